/** A counter of changes, for inspectors that say when they have changed. */

export interface Version {
  /** Something that an inspector shows is another. */
  raise(): void
  /** Another text after every change, and in every other process. */
  text(): string
}

export function createVersion(): Version {
  let changes = 0
  // Made when it is first asked for: some runtimes have no random numbers before their first request.
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
