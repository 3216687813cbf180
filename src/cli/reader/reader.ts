/** Asks a diagnostics router as an operator's program: with the key, within a time, and never anywhere else. */
import { readFile } from 'node:fs/promises'
import { problemText } from '../../internal/http/problem.js'
import { ANSWER_BYTES, readObject } from '../../internal/relay-client/wire.js'
import { UsageError } from '../arguments.js'
import { visible } from '../text/table.js'

/** Longer than a router takes to give up. */
const TIMEOUT_MS = 10_000

/** An answer, or why there is none, in one line. */
export type FetchResult =
  | { readonly value: unknown; readonly problem?: never }
  | { readonly problem: string; readonly value?: never }

export interface Reader {
  /** Where the router is, without a slash at its end. */
  readonly url: string
  /** `route`: a path and query below the router. Never rejects. */
  fetchRoute(route: string, signal?: AbortSignal): Promise<FetchResult>
}

/** @throws UsageError for an invalid router URL. */
export function readTarget(text: string | undefined): string {
  const url = text !== undefined && URL.canParse(text) ? new URL(text) : null
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UsageError('expected the URL of the router, e.g. http://host:port/prefix')
  if (url.username || url.password)
    throw new UsageError('do not put credentials in the URL: use SERVICE_ADMIN_KEY or --key-file')
  // A mark alone is no search, and cuts off all the same what is put behind it.
  if (/[?#]/.test(url.href))
    throw new UsageError('pass the route as a second argument, e.g. /connections?status=connected')
  return url.href.replace(/\/+$/, '')
}

/** The key of the environment, or of a file: never of an argument, which every program of the machine can see. */
export async function readKey(
  file: string | undefined,
  env: Record<string, string | undefined>,
): Promise<string | null> {
  if (file === undefined) return checkKey(env.SERVICE_ADMIN_KEY?.trim() || null, 'SERVICE_ADMIN_KEY')
  const text = await readFile(file, 'utf8').catch(() => '')
  if (text.trim() === '') throw new UsageError('--key-file cannot be read, or is empty')
  return checkKey(text.trim(), '--key-file')
}

/** @throws UsageError for a key that cannot be sent as a header. */
function checkKey(key: string | null, from: string): string | null {
  if (key !== null && !/^[\x20-\x7e]+$/.test(key))
    throw new UsageError(`the key of ${from} must be one line of printable ASCII: a header carries nothing else`)
  return key
}

/** The reason that a request failed: the code of its cause, such as ECONNREFUSED. */
function causeOf(error: unknown): string {
  const { cause = error } = error as { cause?: unknown }
  const { code, message } = cause as { code?: unknown; message?: unknown }
  return visible(String(code ?? message))
}

export function createReader(url: string, key: string | null): Reader {
  return {
    url,
    async fetchRoute(route, signal) {
      // Of its own: a time-out inside of a joined signal may be collected before it is due.
      const timeout = new AbortController()
      const timer = setTimeout(() => timeout.abort(), TIMEOUT_MS)
      const leave = () => timeout.abort()
      signal?.addEventListener('abort', leave)
      try {
        const response = await fetch(url + route, {
          headers: key === null ? {} : { 'x-admin-key': key },
          redirect: 'error',
          signal: timeout.signal,
        })
        const value = await readObject(response, ANSWER_BYTES)
        if (!response.ok) return { problem: visible(problemText(response.status, value ?? null)) }
        return value === undefined
          ? { problem: `the answer is not a JSON object of at most ${ANSWER_BYTES} bytes` }
          : { value }
      } catch (error) {
        const at = new URL(url).origin
        return {
          problem: timeout.signal.aborted
            ? `no answer from ${at} within ${TIMEOUT_MS / 1_000} s`
            : `no answer from ${at}: ${causeOf(error)}`,
        }
      } finally {
        clearTimeout(timer)
        signal?.removeEventListener('abort', leave)
      }
    },
  }
}
