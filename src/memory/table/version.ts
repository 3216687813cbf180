/** A counter of changes, for the versions of inspectors. */

export interface Version {
  /** Records a change of the inspector's data. */
  raise(): void
  /** Returns a new text after every change, and a different one in every process. */
  text(): string
}

export function createVersion(): Version {
  let changes = 0
  // Created on first use: some runtimes have no random numbers before their first request.
  let epoch: string | undefined
  return {
    raise() {
      changes++
    },
    text() {
      epoch ??= crypto.randomUUID()
      return `${epoch}.${changes}`
    },
  }
}
