/** Other spellings of paths of the router, which a guard in front of it would read as another path. */
import { KEY } from './diagnostics.js'

/** What a host makes of a path that is spelled otherwise. */
export interface Spelling {
  /** 400 where the adapter stands alone; 404 where it passes on to the host, or where there is no adapter. */
  refused: 400 | 404
  /** Where a path with dot segments meets an adapter that stands alone, before the host's framework. */
  dots?: 400
  /** The runtime resolves dot segments before a guard or the router reads the path, so both read the same one. */
  resolves?: true
}

export const CAPABILITIES = '/admin/capabilities'

/** Each is equal to `CAPABILITIES` after decoding or resolving. */
export const respelled = [
  '/%61dmin/capabilities',
  '/admi%6e/capabilities',
  '/admi%6E/capabilities',
  '/admin/%63apabilities',
  '/%61dmin/%63apabilities?',
  '/admin//capabilities',
]

export const withDots = [
  '/./admin/capabilities',
  '/%2e/admin/capabilities',
  '/%2E/admin/capabilities',
  '/public/../admin/capabilities',
  '/public/%2e%2e/admin/capabilities',
  '/public/.%2E/admin/capabilities',
  '/admin/x/../capabilities',
  '/admin/./capabilities',
  '/admin/users/%2e%2e/capabilities',
  '/public/..//admin/../admin/capabilities',
]

/** They begin with two slashes, which more readers than ours take for a host. */
export const withTwoSlashes = ['//admin/capabilities', '//evil.test/admin/capabilities']

/** Parameters are decoded once, however they are encoded. */
export const parameters = ['/admin/users/alice/summary', '/admin/users/%61lice/summary', '/admin/users/al%69ce/summary']

export const WITH_KEY = [`X-Admin-Key: ${KEY}`]
