/** Packages that only the users of one command install: how it is said that one of them is not there. */
import { UsageError } from './arguments.js'

/** What `importing` answers. @throws UsageError that names all that `command` needs: who mends one by one is sent in a circle. */
export async function load<T>(
  name: string,
  { command, packages }: { command: string; packages: readonly string[] },
  importing: () => Promise<T>,
): Promise<T> {
  try {
    return await importing()
  } catch (cause) {
    const all = ['relayscope', ...packages].map((each) => `-p ${each}`).join(' ')
    throw new UsageError(`the package ${name} is not installed beside relayscope: npx ${all} relayscope ${command} …`, {
      cause,
    })
  }
}
