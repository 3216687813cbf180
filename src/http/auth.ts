/** Administrator authentication: the port, the API key, the no-op, and how a deployment chooses between them. */
import type { Awaitable } from '../contract/page.js'
import { createHostGuard, LOOPBACK_NAMES } from './guard.js'
import { isLoopbackHost } from './loopback.js'

/** Who may ask. `null`, a throw, and no answer within the deadline all mean 403. */
export interface AdminAuth {
  /** The principal for `onAccess`, or `null`. Must not read the body. */
  authenticate(request: Request): Awaitable<{ name: string } | null>
}

/** The header that carries the administrator key. */
const ADMIN_KEY_HEADER = 'x-admin-key'
/** The environment variable that carries it. */
const ADMIN_KEY_VARIABLE = 'SERVICE_ADMIN_KEY'

/** A bind that others can reach was to be served without a key. */
export class AdminKeyRequiredError extends Error {
  override readonly name = 'AdminKeyRequiredError'

  constructor() {
    super(`an administrator key is required for a bind that is not loopback: pass one or set ${ADMIN_KEY_VARIABLE}`)
  }
}

/** Whether the texts are equal, in a time that depends on `secret` alone. */
function equalsSecret(given: string, secret: string): boolean {
  let difference = given.length ^ secret.length
  for (let i = 0; i < secret.length; i++) difference |= given.charCodeAt(i) ^ secret.charCodeAt(i)
  return difference === 0
}

/**
 * Accepts requests whose `X-Admin-Key` header is `key`. Two such headers arrive joined and are refused.
 *
 * @throws TypeError for a key that is blank or that a header cannot carry: anything but printable ASCII, or spaces at
 * its ends.
 */
export function apiKeyAuth(key: string): AdminAuth {
  if (typeof key !== 'string' || key.trim() === '') throw new TypeError('the administrator key is blank')
  if (!/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(key))
    throw new TypeError('the administrator key must be printable ASCII without spaces at its ends')
  return {
    authenticate(request) {
      const given = request.headers.get(ADMIN_KEY_HEADER)
      return given !== null && equalsSecret(given, key) ? { name: 'admin' } : null
    },
  }
}

/**
 * Accepts every request: for a deliberately isolated local surface only. Loopback alone does not isolate: a web page whose name
 * resolves to this machine is answered too, so the surface needs an adapter's `allowedHosts` beside it.
 */
export function noopAuth(): AdminAuth {
  return { authenticate: () => ({ name: 'anonymous' }) }
}

/**
 * Accepts every request that names this machine, or no host at all, as a call in process does. For what is served on
 * loopback without a key, where a foreign name is a web page that was led here.
 */
function loopbackAuth(): AdminAuth {
  const guard = createHostGuard([LOOPBACK_NAMES])
  const values = (header: string | null) => (header === null ? [] : [header])
  return {
    authenticate({ headers }) {
      const hosts = values(headers.get('host'))
      const refused = hosts.length > 0 && guard({ hosts, origins: values(headers.get('origin')) })
      return refused ? null : { name: 'anonymous' }
    },
  }
}

export interface ResolveAdminAuthOptions {
  /** An explicit key; blank is an error. */
  key?: string | undefined
  /** Where `SERVICE_ADMIN_KEY` is read; a blank value counts as absent. @default the process's own environment */
  env?: Record<string, string | undefined> | undefined
  /** Refuse to go without a key unless `host` is loopback. @default false */
  strict?: boolean | undefined
  /** The address that the host is going to bind. */
  host?: string | undefined
}

/**
 * The administrator authentication of a deployment: the explicit key, else the environment's, else none.
 * Call it before any socket is opened. What it leaves open on a `host` that is loopback answers only who names loopback
 * in `Host` and `Origin`.
 *
 * @throws AdminKeyRequiredError under `strict` without a key, unless `host` is loopback. TypeError for an unusable key.
 */
export function resolveAdminAuth(options: ResolveAdminAuthOptions = {}): AdminAuth {
  const { key, strict = false, host } = options
  if (key !== undefined) return apiKeyAuth(key)
  const env = options.env ?? globalThis.process?.env ?? {}
  const fromEnvironment = env[ADMIN_KEY_VARIABLE]
  if (fromEnvironment !== undefined && fromEnvironment.trim() !== '') return apiKeyAuth(fromEnvironment)
  if (strict && (host === undefined || !isLoopbackHost(host))) throw new AdminKeyRequiredError()
  return host !== undefined && isLoopbackHost(host) ? loopbackAuth() : noopAuth()
}
