/** How the processes that the host has started are ended: asked first, and never left behind. */
import { once } from 'node:events'
import { delay } from './client/relay-client.mjs'

// A process that is stopped or stuck does not hear a request to leave. Clients, nodes and a store leave one after the
// other, and all of them within the time that an ending may take.
const GRACE_MS = 1_000

const owned = new Set()
// However this process ends: what it has started ends with it.
process.on('exit', () => {
  for (const child of owned) child.kill('SIGKILL')
})

/** `child`, which from now on does not outlive this process. */
export function own(child) {
  owned.add(child)
  child.on('exit', () => owned.delete(child))
  return child
}

/** Asks `children` to leave, and ends those that do not. */
export async function endAll(children) {
  const alive = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
  const ended = Promise.all(alive.map((child) => once(child, 'exit')))
  for (const child of alive) child.kill('SIGTERM')
  const grace = new AbortController()
  await Promise.race([ended, delay(GRACE_MS, grace.signal)])
  grace.abort()
  for (const child of alive) child.kill('SIGKILL')
  await ended
}
