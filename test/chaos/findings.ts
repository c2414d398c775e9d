export type Check = (what: string, is: unknown, expected: unknown) => void

/** What is not as it has to be, all of it: the first fault alone seldom says how the others came. */
export function findings(): { found: string[]; check: Check } {
  const found: string[] = []
  const check: Check = (what, is, expected) => {
    if (JSON.stringify(is) !== JSON.stringify(expected)) found.push(`${what}: ${JSON.stringify(is)}, not ${JSON.stringify(expected)}`)
  }
  return { found, check }
}
