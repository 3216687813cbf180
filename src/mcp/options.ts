/** The options of the MCP handler, read once at construction. */
import { invalidOption } from '../internal/contract/checks.js'
import {
  custom,
  defineOptions,
  flag,
  func,
  hook,
  type Input,
  list,
  madeBy,
  type Read,
  readOptions,
  secret,
  text,
  timer,
  whole,
} from '../internal/contract/options.js'
import type { AdminAuth } from '../internal/http/auth.js'
import { createHostGuard, isLoopbackHost, LOOPBACK_NAMES } from '../internal/http/guard.js'
import { escapeHiddenWithin } from './answer.js'
import { type McpRouter, routerSource, type Source, urlSource } from './source.js'

export const DEADLINE_MS = 10_000
export const ANSWER_BYTES = 16_384
const ANSWER_BYTES_MIN = 8_192
const ANSWER_BYTES_MAX = 1_048_576

const isRouter = (value: unknown) => {
  const { fetch, prefix } = (value ?? {}) as Partial<Record<keyof McpRouter, unknown>>
  return typeof fetch === 'function' && typeof prefix === 'string'
}

function isRouterUrl(value: unknown): boolean {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password && !/[?#]/.test(url.href)
}

/** Options of `createMcp`. */
export const McpOptions = defineOptions({
  /** Diagnostics router of this process; pass either this or `url`. It sees each caller's own credentials. */
  router: custom<McpRouter>('a diagnostics router with fetch() and prefix', isRouter).optional(),
  /** URL of the diagnostics router, `http(s)`, including its prefix; redirects are not followed. */
  url: secret('an http(s) URL without credentials, query and fragment', isRouterUrl).optional(),
  /** Key that is sent to the router at `url`. @default the caller's own credentials */
  key: secret('a string that is not blank', (value) => typeof value === 'string' && value.trim() !== '').optional(),
  /**
   * Authenticates callers; a key is also accepted from `Authorization: Bearer`. Required with `key`, and with `url` if
   * `allowedHosts` has names beyond loopback: a router without a key would accept the proxied requests.
   * @default the router authenticates
   */
  auth: madeBy<AdminAuth>('apiKeyAuth(), bearerAuth(), noopAuth()', 'authenticate').optional(),
  /** Public path of the handler, as this process sees it. @default '/mcp' */
  prefix: text().default('/mcp'),
  /**
   * Allowed values of `Host` and `Origin`: `'loopback'`, a name, or a name with a port. A loopback `Origin` must have the port of
   * `Host`. @default ['loopback']
   */
  allowedHosts: list<readonly string[]>().default([LOOPBACK_NAMES]),
  /** Whether agents see message payloads. @default false */
  payloads: flag().default(false),
  /** Maximum size in bytes of the text of one result, and of its structured content; cuts are marked. From 8192. @default 16384 */
  answerBytes: whole(ANSWER_BYTES_MAX, ANSWER_BYTES_MIN).default(ANSWER_BYTES),
  /** Timeout of one request to the router in ms, and of authentication. @default 10000 */
  deadlineMs: timer(DEADLINE_MS),
  /** Returns the time in epoch ms. @default Date.now */
  now: func<() => number>().default(() => Date.now),
  /**
   * Called with errors of an authenticator, a request to the router or a tool. Errors that it throws don't change the response.
   * `null` disables it. @default console.error, with the stack
   */
  onError: hook<(error: unknown) => void>(),
})
export interface McpOptions extends Input<typeof McpOptions> {}

/** Whether only this machine is called that. */
const isOwnName = (name: unknown) =>
  name === LOOPBACK_NAMES || (typeof name === 'string' && isLoopbackHost(name.replace(/:\d+$/, '')))

function checkSource({ router, url, key, auth, allowedHosts }: Read<typeof McpOptions>): Source {
  if ((router === undefined) === (url === undefined)) throw new TypeError('Pass either "router" or "url", not both')
  if (router !== undefined) {
    if (key !== undefined) throw new TypeError('Option "key" needs "url": with "router", each caller sends its own key')
    return routerSource(router)
  }
  if (key !== undefined && auth === undefined)
    throw new TypeError(
      'Missing required option "auth" (required with "key", so that only authenticated callers use that key)',
    )
  // A router without a key, which accepts loopback callers only, would accept any caller by that name.
  if (auth === undefined && !allowedHosts.every(isOwnName))
    throw new TypeError(
      'Missing required option "auth" (required with an "allowedHosts" beyond loopback: requests are proxied from loopback, so a router without a key would accept them)',
    )
  return urlSource(new URL(url as string).href.replace(/\/+$/, ''), key ?? null)
}

/** @throws TypeError or RangeError that names the option. */
export function resolveMcpOptions(options: McpOptions) {
  // An unset variable must not disable authentication.
  for (const name of ['key', 'auth'] as const)
    if (options && Object.hasOwn(options, name) && options[name] === undefined)
      throw new TypeError(
        `${invalidOption(name, 'a value', undefined)}. Leave it out, or is an environment variable unset?`,
      )
  const read = readOptions(McpOptions, options)
  return { ...read, source: checkSource(read), guard: createHostGuard(read.allowedHosts) }
}

// Bounds parts of a message that the protocol's SDK repeats in its errors.

type Json = Record<string, unknown>

/** More than any tool is called. */
const NAME = 64

const isObject = (value: unknown): value is Json => value !== null && typeof value === 'object' && !Array.isArray(value)

/** Shortens an overlong tool name: the SDK repeats unknown names in full. */
export function withShortName<T>(message: T): T {
  if (!isObject(message) || !isObject(message.params)) return message
  const { name } = message.params
  if (typeof name !== 'string' || name.length <= NAME) return message
  return { ...message, params: { ...message.params, name: `${escapeHiddenWithin(name, NAME)}…` } }
}
