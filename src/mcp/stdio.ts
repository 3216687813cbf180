/** The tools for one program that has started this one: nobody else can ask, so there is no door, and the key is its own. */
import { guardErrorHook } from '../async/hook.js'
import { ANSWER_BYTES, DEADLINE_MS } from './options.js'
import { createToolServer } from './server.js'
import { createRouteFetcher, urlSource } from './source.js'

export interface StdioTools {
  /** Where the router is. */
  url: string
  /** `null` for none. */
  key: string | null
  payloads: boolean
  /** Hears what went wrong on the way to the router. */
  lost(error: unknown): void
}

/** Makes the server of each conversation over one router. What goes wrong in here stands on stderr. */
export function createStdioTools({ url, key, payloads, lost }: StdioTools) {
  const failed = guardErrorHook<[]>(undefined)
  const fetchRoute = createRouteFetcher(urlSource(url, key), DEADLINE_MS, lost)({ headers: new Headers() })
  return () => createToolServer(fetchRoute, { payloads, answerBytes: ANSWER_BYTES, now: Date.now, failed })
}
