/** A site registry whose sites live at the relay: what a control server registers with. */

import { runWithin } from '../async/time-limit.js'
import type { Site, SiteInput } from '../contract/sites.js'
import { codeOf, toSegment } from '../relay-client/answer.js'
import { isFlag, isListOf, isOneOf, isRecordOf, isText, nullable } from '../relay-client/shape.js'
import { late, toError } from './relay-error.js'
import { checkRuntime, type PublisherRuntime, type RelayAnswer, request } from './runtime.js'

// One attempt: a DELETE that is sent twice could not say whether it was there.
const REGISTER_MS = 10_000

const isSite = isRecordOf<Site>({
  site_id: isText,
  owner: isText,
  mode: isOneOf('cooperative', 'observe'),
  title: nullable(isText),
  event_names: isListOf(isText),
  action_names: isListOf(isText),
  capability_profile: isRecordOf<Site['capability_profile']>({ action_invocation: isFlag }),
  created_at: isText,
  updated_at: isText,
})

/** That the relay has no such site. Any other 404 is of a route that there is not, or of somebody else's server. */
const isNoSite = ({ status, body }: RelayAnswer) => status === 404 && codeOf(body) === 'not_found'

/** A `SiteRegistry` over HTTP. The owner is the host that the relay authenticates, never what is put. */
export interface RemoteSiteRegistry {
  get(siteId: string): Promise<Site | null>
  /** @throws RelayError with the relay's code, e.g. `owner_mismatch` or `generic_action_name`. */
  put(site: SiteInput): Promise<{ created: boolean; site: Site }>
  /** Whether it was there, as a site of this host. */
  delete(siteId: string): Promise<boolean>
}

export interface RemoteSiteRegistryOptions {
  runtime: PublisherRuntime
}

/**
 * The sites of the runtime's host at its relay (`GET`, `PUT`, `DELETE /sites/{site_id}`). Each call is one request of
 * at most 10 s. All methods reject with `RelayError`.
 */
export function createRemoteSiteRegistry(options: RemoteSiteRegistryOptions): RemoteSiteRegistry {
  checkRuntime(options)
  const { runtime } = options
  async function send(method: string, siteId: string, body?: unknown) {
    const path = `/sites/${toSegment('the site id', siteId)}`
    return runWithin((signal) => request(runtime, method, path, body, signal), { ms: REGISTER_MS, late })
  }

  return {
    async get(siteId) {
      const answer = await send('GET', siteId)
      if (isNoSite(answer)) return null
      if (answer.status !== 200 || !isSite(answer.body)) throw toError(answer)
      return answer.body
    },
    async put({ site_id, owner: _decidedByTheRelay, ...definition }) {
      const answer = await send('PUT', site_id, definition)
      if ((answer.status !== 200 && answer.status !== 201) || !isSite(answer.body)) throw toError(answer)
      return { created: answer.status === 201, site: answer.body }
    },
    async delete(siteId) {
      const answer = await send('DELETE', siteId)
      if (isNoSite(answer)) return false
      if (answer.status !== 204) throw toError(answer)
      return true
    },
  }
}
