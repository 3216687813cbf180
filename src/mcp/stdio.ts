/**
 * The tools over stdio for the program that started this process: no authentication of callers; the key is configured.
 */
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
  /** Called with errors of reading the router. */
  lost(error: unknown): void
}

/** Creates the server of each conversation over one router. Internal errors go to stderr. */
export function createStdioTools({ url, key, payloads, lost }: StdioTools) {
  const failed = guardErrorHook<[]>(undefined)
  const fetchRoute = createRouteFetcher(urlSource(url, key), DEADLINE_MS, lost)({ headers: new Headers() })
  return () => createToolServer(fetchRoute, { payloads, answerBytes: ANSWER_BYTES, now: Date.now, failed })
}
