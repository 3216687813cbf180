/** Packages that only the users of one command install: how it is said that one of them is not there. */
import { UsageError } from './arguments.js'

/**
 * The module that `importing` returns. @throws UsageError that names all packages that `command` needs, not only the
 * first missing one.
 */
export async function load<T>(
  name: string,
  { command, packages }: { command: string; packages: readonly string[] },
  importing: () => Promise<T>,
): Promise<T> {
  try {
    return await importing()
  } catch (cause) {
    const all = ['relayscope', ...packages].map((each) => `-p ${each}`).join(' ')
    throw new UsageError(`the package ${name} is not installed. Run: npx ${all} relayscope ${command} …`, {
      cause,
    })
  }
}
