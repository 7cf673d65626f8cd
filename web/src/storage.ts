// SPDX-License-Identifier: Apache-2.0
//
// What outlives a reload: as long as the tab is there, or as long as the browser keeps it. A browser may deny both, and then
// even to ask for them is an error; what would be kept there is kept by the page instead, until it is left.

export type Store = Pick<Storage, "length" | "key" | "getItem" | "setItem" | "removeItem">;

class Shelf implements Store {
  private items = new Map<string, string>();

  get length(): number {
    return this.items.size;
  }
  key(index: number): string | null {
    return [...this.items.keys()][index] ?? null;
  }
  getItem(name: string): string | null {
    return this.items.get(name) ?? null;
  }
  setItem(name: string, text: string): void {
    this.items.set(name, text);
  }
  removeItem(name: string): void {
    this.items.delete(name);
  }
}

const TRIED = "ttmem.tried";

/** @given: asks for it, which may fail; so may reading and writing, each by itself. */
export function openStore(given: () => Store): Store {
  try {
    const store = given();
    store.setItem(TRIED, TRIED);
    const works = store.getItem(TRIED) === TRIED;
    store.removeItem(TRIED);
    if (works) return store;
  } catch {
    // It is denied.
  }
  return new Shelf();
}

/** Whether what is put there will outlive a reload. */
export const lasts = (store: Store): boolean => !(store instanceof Shelf);

export const tabStore = openStore(() => sessionStorage);
export const browserStore = openStore(() => localStorage);
