/** What a host gives the tools for agents, checked once at construction. */
import {
  ANYTHING,
  checkBound,
  checkOptions,
  FLAG,
  FUNCTION,
  HOOK,
  having,
  invalidOption,
  LIST,
  resolveBounds,
  type Shape,
  TEXT,
  TIMER_MAX_MS,
} from '../contract/checks.js'
import type { AdminAuth } from '../http/auth.js'
import { createHostGuard, type HostGuard, isLoopbackHost, LOOPBACK_NAMES } from '../http/guard.js'
import { type McpRouter, routerSource, type Source, urlSource } from './source.js'

export interface McpOptions {
  /** The diagnostics router of this process that answers: this, or `url`. It hears of each caller as if he had asked it himself. */
  router?: McpRouter | undefined
  /** Where the diagnostics router is that answers, `http(s)`, its prefix included; redirects are not followed. */
  url?: string | undefined
  /** The key that the router at `url` is sent. @default what the caller was let in with */
  key?: string | undefined
  /**
   * Who may come in; a key is taken from `Authorization: Bearer` too. Needed beside `key`, which would else be everybody's, and
   * beside `url` where `allowedHosts` names more than this machine, which the router there may answer without a key.
   * @default whoever the router answers
   */
  auth?: AdminAuth | undefined
  /** The whole public path under which this process sees it. @default '/mcp' */
  prefix?: string | undefined
  /**
   * What `Host`, and `Origin` where there is one, may name: `'loopback'`, a name, a name and its port. A page of this machine is
   * let in from the port of `Host` alone. @default ['loopback']
   */
  allowedHosts?: readonly string[] | undefined
  /** Whether payloads of messages are shown to an agent. @default false */
  payloads?: boolean | undefined
  /** Bytes of the text of one answer, and again of its structured content, from 8192; what is cut is said. @default 16384 */
  answerBytes?: number | undefined
  /** Time for each question to the router, and before it for who asks. @default 10000 */
  deadlineMs?: number | undefined
  /** Epoch milliseconds. @default Date.now */
  now?: (() => number) | undefined
  /**
   * Called with whatever an authenticator, the way to the router or a tool threw. What it throws changes no answer. `null` for
   * nobody. @default console.error, with the stack
   */
  onError?: ((error: unknown) => void) | null | undefined
}

export interface ResolvedMcpOptions {
  source: Source
  auth: AdminAuth | undefined
  prefix: string
  guard: HostGuard
  payloads: boolean
  answerBytes: number
  deadlineMs: number
  now: () => number
}

export const DEADLINE_MS = 10_000
export const ANSWER_BYTES = 16_384
const ANSWER_BYTES_MIN = 8_192
const ANSWER_BYTES_MAX = 1_048_576

const OPTIONS: Shape<McpOptions> = {
  router: {
    said: 'a diagnostics router with fetch() and prefix',
    test: (value) => having('fetch').test(value) && typeof (value as { prefix?: unknown }).prefix === 'string',
  },
  url: TEXT,
  key: TEXT,
  auth: {
    ...having('authenticate'),
    said: 'apiKeyAuth(), bearerAuth(), noopAuth() or an object with authenticate()',
  },
  prefix: TEXT,
  allowedHosts: LIST,
  payloads: FLAG,
  answerBytes: ANYTHING,
  deadlineMs: ANYTHING,
  now: FUNCTION,
  onError: HOOK,
}

function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || /[?#]/.test(url.href))
    throw new TypeError(invalidOption('url', 'an http(s) URL without credentials, query and fragment'))
  return url.href.replace(/\/+$/, '')
}

/** Whether only this machine is called that. */
const isOwnName = (name: unknown) =>
  name === LOOPBACK_NAMES || (typeof name === 'string' && isLoopbackHost(name.replace(/:\d+$/, '')))

function checkSource({ router, url, key, auth, allowedHosts }: McpOptions): Source {
  if ((router === undefined) === (url === undefined)) throw new TypeError('Pass either "router" or "url", not both')
  if (router !== undefined) {
    if (key !== undefined) throw new TypeError('Option "key" needs "url": with "router", each caller sends its own key')
    return routerSource(router)
  }
  if (key !== undefined && key.trim() === '') throw new TypeError(invalidOption('key', 'a string that is not blank'))
  if (key !== undefined && auth === undefined)
    throw new TypeError(
      'Missing required option "auth" (required with "key", so that only authenticated callers use that key)',
    )
  // A router without a key, which answers this machine alone, would answer whoever comes by that name.
  if (auth === undefined && !(allowedHosts ?? []).every(isOwnName))
    throw new TypeError(
      'Missing required option "auth" (required with an "allowedHosts" beyond loopback: requests are proxied from loopback, so a router without a key would accept them)',
    )
  return urlSource(checkUrl(url as string), key ?? null)
}

/** @throws TypeError or RangeError that names the option. */
export function resolveMcpOptions(options: McpOptions): ResolvedMcpOptions {
  checkOptions(options, OPTIONS)
  // A variable that nobody has set must not open what it was to close.
  for (const name of ['key', 'auth'] as const)
    if (Object.hasOwn(options, name) && options[name] === undefined)
      throw new TypeError(
        `${invalidOption(name, 'a value', undefined)}. Leave it out, or is an environment variable unset?`,
      )
  const { auth, prefix = '/mcp', allowedHosts = [LOOPBACK_NAMES], payloads = false, answerBytes, now } = options
  return {
    source: checkSource(options),
    auth,
    prefix,
    guard: createHostGuard(allowedHosts),
    payloads,
    answerBytes: checkBound('answerBytes', answerBytes ?? ANSWER_BYTES, ANSWER_BYTES_MAX, ANSWER_BYTES_MIN),
    ...resolveBounds(options, { deadlineMs: [DEADLINE_MS, TIMER_MAX_MS] }),
    now: now ?? Date.now,
  }
}
