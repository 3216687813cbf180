/** Administrator authentication: the port, keys in a header, the no-op, and how a deployment chooses between them. */

import { invalidOption } from '../contract/checks.js'
import { checkId } from '../contract/ids.js'
import { defineOptions, flag, type Input, object, readOptions, text, unchecked } from '../contract/options.js'
import type { Awaitable } from '../contract/page.js'
import { createHostGuard, isForwarded, isLoopbackAddress, isLoopbackHost, LOOPBACK_NAMES } from './guard.js'
import { ProblemError } from './problem.js'

// Named keys, and a constant-time comparison.

/** Keys by the name of who holds them; several of one name while they are being changed. */
export type NamedKeys =
  | Readonly<Record<string, string | readonly string[]>>
  | readonly { readonly name: string; readonly key: string }[]

/** Returns the principal name of a key, or `null` for an unknown key. */
type Keyring = (given: string) => { readonly name: string } | null

/** Whether the texts are equal, in a time that depends on `secret` alone. */
function equalsSecret(given: string, secret: string): boolean {
  let difference = given.length ^ secret.length
  for (let i = 0; i < secret.length; i++) difference |= given.charCodeAt(i) ^ secret.charCodeAt(i)
  return difference === 0
}

function entriesOf(keys: NamedKeys): [name: string, key: string][] {
  if (Array.isArray(keys)) return keys.map((entry) => [entry?.name, entry?.key])
  if (keys === null || typeof keys !== 'object') throw new TypeError('Invalid keys: expected a string, or keys by name')
  return Object.entries(keys).flatMap(([name, of]): [string, string][] =>
    (Array.isArray(of) ? of : [of]).map((key) => [name, key]),
  )
}

/**
 * Creates a key lookup. A single unnamed key belongs to `admin`. Each lookup compares with all keys, so its time
 * reveals nothing.
 *
 * @param form The pattern of a valid key, and its description for error messages.
 * @throws TypeError for a blank or malformed key, an invalid name, a key with two names, and an empty set.
 */
function createKeyring(keys: string | NamedKeys, form: { pattern: RegExp; expected: string }): Keyring {
  const entries = typeof keys === 'string' ? ([['admin', keys]] as const) : entriesOf(keys)
  if (entries.length === 0) throw new TypeError('Invalid keys: expected at least one administrator key')
  const names = new Map<string, string>()
  for (const [name, key] of entries) {
    const reason = typeof name === 'string' ? checkId(name) : 'must be a string'
    if (reason !== undefined) throw new TypeError(`Invalid keys: the name of an administrator key ${reason}`)
    if (typeof key !== 'string' || key.trim() === '')
      throw new TypeError(`Invalid keys: the administrator key of ${name} is blank`)
    if (!form.pattern.test(key))
      throw new TypeError(`Invalid keys: the administrator key of ${name} must be ${form.expected}`)
    if ((names.get(key) ?? name) !== name)
      throw new TypeError(`Invalid keys: ${names.get(key)} and ${name} have the same key`)
    names.set(key, name)
  }
  const ring = [...names].map(([key, name]) => ({ key, principal: Object.freeze({ name }) }))
  return (given) => {
    let found: { readonly name: string } | null = null
    for (const { key, principal } of ring) if (equalsSecret(given, key)) found = principal
    return found
  }
}

/** An authenticated caller. A host's own principal may carry more fields, which only its `authorize` sees. */
export interface AdminPrincipal {
  /** Name of the caller, as it appears in access records. */
  readonly name: string
}

/** Where a request came from. */
export interface RequestSource {
  /** The socket's remote address, which may be a proxy's; `null` where the host doesn't pass one. */
  readonly remoteAddress: string | null
}

/** Authenticates requests. `null`, an error and a missed deadline all result in 403. */
export interface AdminAuth<Principal extends AdminPrincipal = AdminPrincipal> {
  /**
   * Returns the principal, whose name is passed to `onAccess`, or `null`. Must not read the body.
   *
   * @param source Where the request came from. When you wrap `resolveAdminAuth`, pass it on.
   */
  authenticate(request: Request, source?: RequestSource): Awaitable<Principal | null>
}

/** The header that carries the administrator key. */
const ADMIN_KEY_HEADER = 'x-admin-key'
/** The environment variable that carries it. */
const ADMIN_KEY_VARIABLE = 'SERVICE_ADMIN_KEY'

/** A bind that others can reach was to be served without a key. */
export class AdminKeyRequiredError extends Error {
  override readonly name = 'AdminKeyRequiredError'

  /** @param host the host name that was to be bound, if known. */
  constructor(host?: string) {
    const unsaid = host === undefined ? ', or pass the option host to state that the bind is loopback' : ''
    super(
      `an administrator key is required for a bind that is not loopback: pass one or set ${ADMIN_KEY_VARIABLE}${unsaid}`,
    )
  }
}

/** Characters that a header value can carry unchanged. */
const HEADER_TEXT = {
  pattern: /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/,
  expected: 'printable ASCII without a leading or trailing space',
}
const TOKEN = { pattern: /^[\x21-\x7e]+$/, expected: 'printable ASCII without spaces' }
const BEARER = /^Bearer +([\x21-\x7e]+)$/i

/**
 * Accepts requests whose `X-Admin-Key` header is a known key. A repeated header arrives joined and is refused.
 *
 * @param keys One key, whose principal is `admin`; or keys by principal name, several per name during rotation.
 * @throws TypeError for no key, a blank key, one that a header cannot carry (anything but printable ASCII, or leading
 * or trailing spaces), a key shared by two names, and an invalid name.
 * @example
 * apiKeyAuth({ ada: keyOfAda, ci: [newKey, oldKey] })
 */
export function apiKeyAuth(keys: string | NamedKeys): AdminAuth {
  const holderOf = createKeyring(keys, HEADER_TEXT)
  return {
    authenticate(request) {
      const given = request.headers.get(ADMIN_KEY_HEADER)
      return given === null ? null : holderOf(given)
    },
  }
}

/**
 * Accepts requests whose `Authorization` header is `Bearer` and a key.
 *
 * @param keys As `apiKeyAuth` takes them; a space cannot be part of one.
 * @throws TypeError as `apiKeyAuth`.
 */
export function bearerAuth(keys: string | NamedKeys): AdminAuth {
  const holderOf = createKeyring(keys, TOKEN)
  return {
    authenticate(request) {
      const given = BEARER.exec(request.headers.get('authorization') ?? '')?.[1]
      return given === undefined ? null : holderOf(given)
    },
  }
}

/**
 * `request` with its bearer token as the key of an administrator, for callers that can send no header of their own; `null`
 * where it has none, or a key as well.
 */
export function withBearerAsKey({ url, headers, signal }: Request): Request | null {
  const token = BEARER.exec(headers.get('authorization') ?? '')?.[1]
  if (token === undefined || headers.has(ADMIN_KEY_HEADER)) return null
  const own = new Headers(headers)
  own.set(ADMIN_KEY_HEADER, token)
  return new Request(url, { headers: own, signal })
}

/**
 * Accepts every request: only for a deliberately isolated local service. Loopback alone does not isolate it: a web page
 * whose host name resolves to this machine is served too, so also set an adapter's `allowedHosts`.
 */
export function noopAuth(): AdminAuth {
  return { authenticate: () => ({ name: 'anonymous' }) }
}

const NO_ADDRESS =
  'relayscope: there is no administrator key, and the host of this router does not pass the remote address of requests, so only their Host is checked, which a caller can choose. Pass the address (router(request, { remoteAddress })), or set SERVICE_ADMIN_KEY'

/**
 * Accepts direct requests of this machine: from a loopback address, through no proxy, and with a `Host` and an `Origin`
 * that name loopback, since a web page with a foreign name may have been led here.
 */
function loopbackAuth(): AdminAuth {
  const guard = createHostGuard([LOOPBACK_NAMES])
  const values = (header: string | null) => (header === null ? [] : [header])
  let hasWarned = false
  return {
    authenticate({ headers, url }, source) {
      const address = source?.remoteAddress ?? null
      const isLocal = address === null || isLoopbackAddress(address)
      // An in-process call has no Host header; its URL names the host.
      const host = headers.get('host')
      const named = { hosts: [host ?? new URL(url).host], origins: values(headers.get('origin')) }
      if (!isLocal || isForwarded(headers.keys()) || guard(named) !== undefined)
        throw new ProblemError('admin_key_required')
      if (address === null && host !== null && !hasWarned) {
        hasWarned = true
        console.warn(NO_ADDRESS)
      }
      return { name: 'anonymous' }
    },
  }
}

const ANSWERS_ALL =
  'relayscope: there is no administrator key, and a request came from another machine or through a proxy; it was answered, as all others are. Set SERVICE_ADMIN_KEY, or pass strict: true and the host that you bind to resolveAdminAuth'

/** Accepts every request, and warns once of one from another machine or through a proxy. */
function warningAuth(): AdminAuth {
  const { authenticate } = noopAuth()
  let hasWarned = false
  return {
    authenticate(request, source) {
      const address = source?.remoteAddress ?? null
      const isLocal = (address === null || isLoopbackAddress(address)) && !isForwarded(request.headers.keys())
      if (!isLocal && !hasWarned) {
        hasWarned = true
        console.warn(ANSWERS_ALL)
      }
      return authenticate(request, source)
    },
  }
}

/** Options of `resolveAdminAuth`. */
export const ResolveAdminAuthOptions = defineOptions({
  /** An explicit key. A blank or `undefined` value is an error. */
  key: unchecked<string | undefined>(),
  /** Where `SERVICE_ADMIN_KEY` is read; a blank value counts as absent. @default the process's own environment */
  env: object<Record<string, string | undefined>>().optional(),
  /** Without a key: throws unless `host` is loopback, and then accepts this machine only. @default false */
  strict: flag().default(false),
  /** The address that the host is going to bind. */
  host: text().optional(),
})
export interface ResolveAdminAuthOptions extends Input<typeof ResolveAdminAuthOptions> {}

/**
 * Returns the administrator authentication of a deployment: the explicit key, else the environment's. Without a key every
 * request is accepted; the first one from another machine or through a proxy causes a warning. Under `strict` and with a
 * loopback `host` only direct requests of this machine are: from a loopback address, without headers that proxies add,
 * and with a loopback name in `Host` and `Origin`. All others get 403 `admin_key_required`.
 * Call it before any socket is opened.
 *
 * @throws AdminKeyRequiredError under `strict` without a key, unless `host` is loopback. TypeError for an unusable key,
 * a `key` that is there and undefined among them.
 */
export function resolveAdminAuth(options: ResolveAdminAuthOptions = {}): AdminAuth {
  const { key, strict, host, env = globalThis.process?.env ?? {} } = readOptions(ResolveAdminAuthOptions, options)
  // An unset environment variable must not disable authentication.
  if (Object.hasOwn(options, 'key') && key === undefined)
    throw new TypeError(`${invalidOption('key', 'a string', key)}. Is the environment variable set?`)
  if (key !== undefined) return apiKeyAuth(key)
  const fromEnvironment = env[ADMIN_KEY_VARIABLE]
  if (fromEnvironment !== undefined && fromEnvironment.trim() !== '') return apiKeyAuth(fromEnvironment)
  if (!strict) return warningAuth()
  if (host === undefined || !isLoopbackHost(host)) throw new AdminKeyRequiredError(host)
  return loopbackAuth()
}
