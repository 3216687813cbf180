/** Runs the garbage collector, for the tests of what must outlive it. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

/** Collects all objects that are not referenced. */
export async function collectGarbage(): Promise<void> {
  for (let n = 0; n < 3; n++) {
    collect()
    // What a weak reference was read for stays until the task that read it ends.
    await new Promise(setImmediate)
  }
}
