/** One question to the router: the key goes along, an answer that is known already is not sent again. */
import { urlBelow } from './address.js'
import { currentKey } from './key.js'

/** Why there is no answer. `status` 0: the router did not respond. */
export interface Problem {
  readonly status: number
  readonly code: string
  readonly title: string
  /** Where the documentation of the package explains it. */
  readonly help?: string
}

export type Reply =
  | { readonly kind: 'answer'; readonly value: unknown; readonly etag: string | null }
  | { readonly kind: 'same' }
  | { readonly kind: 'problem'; readonly problem: Problem }

/** Timeout of one request. Routers end their requests earlier. */
const TIMEOUT_MS = 8_000

const UNREACHABLE: Problem = { status: 0, code: 'unreachable', title: 'The router does not answer' }

const NO_ADDRESS: Problem = { status: 400, code: 'bad_address', title: 'This is not a path of the router' }

const { origin, pathname } = new URL(document.documentElement.dataset.api ?? '', document.baseURI)

/** The recorded instant whose answers are requested, in epoch ms; `null` for the present. */
let instant: number | null = null

export const currentInstant = (): number | null => instant

export function setInstant(at: number | null): void {
  instant = at
}

/** The clock of the router, as far as its answers say, minus that of this browser. */
let skew = 0

/** Epoch ms by the clock of the router. */
export const present = (): number => Math.round(Date.now() + skew)

/** Answers of these are about the router, or name their instant. */
export const isFixed = (path: string): boolean => /^\/($|capabilities|at\/)/.test(path)

/** Every URL of the router that the page asks or shows is made here; `null` for none of its own. */
export const urlOf = (asked: string) =>
  urlBelow(origin + pathname.replace(/\/$/, '') + (instant === null || isFixed(asked) ? '' : `/at/${instant}`), asked)

function keyHeaders(): Record<string, string> {
  const key = currentKey()
  return key === null ? {} : { 'x-admin-key': key }
}

async function problemOf(response: Response): Promise<Problem> {
  const { status } = response
  try {
    const { code, title, errors, help } = await response.json()
    const reasons = (errors ?? []).map(({ name, reason }: { name: string; reason: string }) => `${name} ${reason}`)
    return { status, code: String(code), title: [title, ...reasons].join('; '), help }
  } catch {
    return { status, code: 'unexpected', title: `A proxy answered ${status} instead of the router` }
  }
}

/** Asks `path` below the router. Never rejects. */
export async function fetchRoute(path: string, etag: string | null, signal: AbortSignal): Promise<Reply> {
  const url = urlOf(path)
  if (url === null) return { kind: 'problem', problem: NO_ADDRESS }
  try {
    const headers = { ...keyHeaders(), ...(etag === null ? {} : { 'if-none-match': etag }) }
    const response = await fetch(url, {
      headers,
      cache: 'no-store',
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    })
    if (response.status === 304) return { kind: 'same' }
    if (!response.ok) return { kind: 'problem', problem: await problemOf(response) }
    const value = await response.json()
    const observed = instant === null && !isFixed(path) && Date.parse(value.observed_at)
    if (observed) skew = observed - Date.now()
    return { kind: 'answer', value, etag: response.headers.get('etag') }
  } catch {
    return { kind: 'problem', problem: UNREACHABLE }
  }
}
