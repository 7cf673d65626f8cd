// SPDX-License-Identifier: Apache-2.0
//
// The part of d3-flame-graph that is used; the package brings no types.

declare module "d3-flame-graph" {
  export interface FlameNode {
    name: string;
    value: number;
    children: FlameNode[];
  }
  export interface FlameFrame {
    data: FlameNode;
    depth: number;
    x0: number;
    x1: number;
    parent: FlameFrame | null;
    highlight?: boolean;
  }
  export interface FlameGraph {
    (selection: unknown): void;
    width(pixels: number): FlameGraph;
    cellHeight(pixels: number): FlameGraph;
    transitionDuration(ms: number): FlameGraph;
    minFrameSize(pixels: number): FlameGraph;
    inverted(yes: boolean): FlameGraph;
    tooltip(yes: false): FlameGraph;
    onHover(handler: (frame: FlameFrame) => void): FlameGraph;
    onClick(handler: (frame: FlameFrame) => void): FlameGraph;
    label(text: (frame: FlameFrame) => string): FlameGraph;
    setColorMapper(colour: (frame: FlameFrame) => string): FlameGraph;
    search(term: string): void;
    clear(): void;
    zoomTo(frame: FlameFrame): void;
    resetZoom(): void;
    destroy(): void;
  }
  export default function flamegraph(): FlameGraph;
}

declare module "d3-selection" {
  interface Selection {
    datum(data: unknown): Selection;
    call(of: (selection: unknown) => void): Selection;
    selectAll(selector: string): Selection;
    each(visit: (this: Element, data: unknown) => void): Selection;
  }
  export function select(element: Element): Selection;
}
