/** The tools for one program that has started this one: nobody else can ask, so there is no door, and the key is its own. */
import { guardErrorHook } from '../async/hook.js'
import { ANSWER_BYTES, DEADLINE_MS } from './options.js'
import { createToolServer } from './server.js'
import { createAsk, urlSource } from './source.js'

interface StdioTools {
  /** Where the router is. */
  url: string
  /** `null` for none. */
  key: string | null
  payloads: boolean
}

/** Makes the server of each conversation over one router. What goes wrong in here stands on stderr. */
export function createStdioTools({ url, key, payloads }: StdioTools) {
  const failed = guardErrorHook<[]>(undefined)
  // That nobody answers is told to whoever asks, and is no fault of this program.
  const ask = createAsk(urlSource(url, key), DEADLINE_MS, () => {})(new Headers())
  return () => createToolServer(ask, { payloads, answerBytes: ANSWER_BYTES, now: Date.now, failed })
}
