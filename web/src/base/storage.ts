// SPDX-License-Identifier: Apache-2.0
//
// Session and local storage, which survive a reload. A browser may deny both, and then even accessing them throws; the
// page then keeps the values in memory until it is closed.

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

/** @given: returns the storage, and may throw; so may each read and write. */
export function openStore(given: () => Store): Store {
  try {
    const store = given();
    store.setItem(TRIED, TRIED);
    const works = store.getItem(TRIED) === TRIED;
    store.removeItem(TRIED);
    if (works) return store;
  } catch {
    // Access is denied.
  }
  return new Shelf();
}

/** Whether stored values will survive a reload. */
export const lasts = (store: Store): boolean => !(store instanceof Shelf);

export const tabStore = openStore(() => sessionStorage);
export const browserStore = openStore(() => localStorage);
