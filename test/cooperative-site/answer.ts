/** What the relay answers to one request, read to its end. */
import type { World } from './world.js'

/** A request: the user, or `null` if unauthenticated, then method, path below the prefix, body and headers. */
export type Asked = [user: string | null, method: string, path: string, body?: unknown, headers?: object]

export async function answer(world: World, ...[user, method, path, body, headers]: Asked) {
  const response = await world.ask(user, method, path, { body, ...(headers ? { headers } : {}) })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text), headers: response.headers }
}
