const memory = new Map<string, string>()

/** What this browser keeps for this origin; where it is not allowed to keep anything, as long as the page is open. */
export const storage = {
  get(key: string): string | null {
    try {
      return memory.get(key) ?? localStorage.getItem(key)
    } catch {
      return null
    }
  },
  set(key: string, value: string): void {
    try {
      localStorage.setItem(key, value)
      memory.delete(key)
    } catch {
      memory.set(key, value)
    }
  },
  remove(key: string): void {
    memory.delete(key)
    try {
      localStorage.removeItem(key)
    } catch {
      // Then there is nothing.
    }
  },
}
