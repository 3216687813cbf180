/** Where the answers come from: a router of this process or of another, asked within a time and a size, and so many times at once. */
import { raceAbort } from '../async/abort.js'
import { createSemaphore } from '../async/semaphore.js'
import { limitTime } from '../async/time-limit.js'
import { problemWords } from '../http/problem.js'
import { readObject } from '../relay-client/answer.js'
import { shownWithin } from './untrusted.js'

/** Puts one question, a path and query below the router, with the headers of whoever asks. */
export type Source = (route: string, caller: Headers, signal: AbortSignal) => Promise<Response>

/** An answer, or why there is none, in one line. */
export type Asked =
  | { readonly value: Record<string, unknown>; readonly problem?: never; readonly status?: never }
  | { readonly problem: string; readonly status: number | null; readonly value?: never }

/** Puts a question of one caller. Never rejects. */
export type Ask = (route: string, signal: AbortSignal) => Promise<Asked>

/** Questions that are under way at once; one overview is eight. */
const AT_ONCE = 16
/** Those that wait for their turn. */
const WAITING = 256
/** Of one answer: twice what the longest page of a router has. */
const ANSWER_BYTES = 16_777_216
/** Of a problem's words, in characters. */
const WORDS = 500

/** What belongs to the request that carried the question, and not to the question. */
const OF_THE_CARRIER = /^(?:accept|connection|content-|expect|if-|keep-alive|mcp-|te$|trailer|transfer-|upgrade)/

/** The router of this process: it sees the caller as he came in, and lets him see what is his. */
export function routerSource({ prefix, fetch }: RouterToAsk): Source {
  return (route, caller, signal) => {
    const headers = new Headers([...caller].filter(([name]) => !OF_THE_CARRIER.test(name)))
    return fetch(new Request(`http://localhost${prefix}${route}`, { headers, signal }))
  }
}

/** What is asked of a router. */
export interface RouterToAsk {
  /** The prefix in canonical form. */
  readonly prefix: string
  fetch(request: Request): Promise<Response>
}

/** The router at `url`: it is told `key`, or else what the caller has shown to be let in, and nothing more of him. */
export function urlSource(url: string, key: string | null): Source {
  return (route, caller, signal) => {
    const headers = new Headers(key === null ? {} : { 'x-admin-key': key })
    for (const name of ['x-admin-key', 'authorization']) {
      const value = key === null ? caller.get(name) : null
      if (value !== null) headers.set(name, value)
    }
    return fetch(url + route, { headers, redirect: 'manual', signal })
  }
}

const problem = (words: string, status: number | null = null): Asked => ({ problem: words, status })

async function put(source: Source, route: string, caller: Headers, signal: AbortSignal): Promise<Asked> {
  const response = await source(route, caller, signal)
  const body = await readObject(response, ANSWER_BYTES)
  if (!response.ok) return problem(shownWithin(problemWords(response.status, body), WORDS), response.status)
  return body === undefined ? problem('what answered there is no router, or it answered too much') : { value: body }
}

/**
 * `source` for one caller after the other, bounded for all of them together.
 *
 * @param ms For each question, and the wait for its turn.
 * @param failed Hears what was thrown: nobody who asks is told.
 */
export function createAsk(source: Source, ms: number, failed: (error: unknown) => void) {
  const turns = createSemaphore(AT_ONCE, WAITING, () => undefined)
  const late = () => new Error(`no answer within ${ms} ms`)

  return (caller: Headers): Ask =>
    async (route, left) => {
      const { signal, clear } = limitTime({ ms, late, signal: left })
      let isMine = false
      let turn: ReturnType<typeof turns.acquire>
      try {
        await raceAbort(
          new Promise<void>((resolve, reject) => {
            turn = turns.acquire(1, () => {
              isMine = true
              resolve()
            })
            if (turn === undefined) reject(new Error('too many questions wait'))
          }),
          signal,
        )
        return await raceAbort(put(source, route, caller, signal), signal)
      } catch (error) {
        if (signal.aborted) return problem(`no answer within ${ms / 1_000} s`)
        if (turn === undefined) return problem('too many questions wait for their turn: ask again later')
        failed(error)
        return problem('nobody answers there')
      } finally {
        clear()
        if (isMine) turns.release()
        else if (turn !== undefined) turns.leave(turn)
      }
    }
}
