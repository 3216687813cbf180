/** A whole relay over the real facilities in memory, with alice's notes, her laptop, and viewers bob and carol. */
import { onTestFinished, vi } from 'vitest'
import * as z from 'zod'
import {
  type CooperativeSiteRouterOptions,
  cooperativeSiteOpenApi,
  createActionHandlers,
  createCooperativeSiteEventBus,
  createCooperativeSiteRouter,
  createDispatchConnector,
  createSessionPolicy,
  createSessionRegistry,
  createSiteRegistry,
  type ReplyTarget,
} from '../../src/cooperative-site/index.js'
import type { Instance } from '../../src/internal/contract/connections.js'
import type { SiteMessage } from '../../src/internal/contract/ingest.js'
import type { Session } from '../../src/internal/contract/sessions.js'
import { createMemoryFacilities } from '../../src/memory/index.js'
import { notes } from '../contract/sites.js'
import { expectDescribed } from '../openapi.js'
import { deferred } from './deferred.js'

const DOCUMENT = cooperativeSiteOpenApi({ prefix: '/relay' })

export const TOPIC = 'users/alice/sites/notes/events'
export const laptop = { user_id: 'alice', client_id: 'laptop', instance_id: 'laptop-1' }

let messages = 0
/** A message of alice's laptop that says that a note has changed. */
export function changed(data: unknown = null, change: Partial<SiteMessage> = {}): SiteMessage {
  return {
    message_id: `m${++messages}`,
    kind: 'event',
    stream: 'sites/notes/events',
    client_id: 'laptop',
    instance_id: 'laptop-1',
    payload: { name: 'note_changed', data: data as null },
    ...change,
  }
}

/** Who a request says it is: `Bearer alice`. */
export async function whoAsks(request: Request): Promise<{ user_id: string } | null> {
  const user_id = /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '')?.[1]
  return user_id === undefined ? null : { user_id }
}

/** Attaches alice's laptop with a handler of `archive_note` that runs until its signal aborts. */
export async function attachWaitingHandler(
  { facilities, connector }: { facilities: Pick<World['facilities'], 'dispatcher'>; connector: ReplyTarget },
  client: Instance,
) {
  const onError = vi.fn()
  const handlers = createActionHandlers({ onError })
  const started = deferred<boolean>()
  const aborted = deferred<boolean>()
  handlers.handle('archive_note', { parameters: z.looseObject({}) }, async (_parameters, { signal }) => {
    signal.addEventListener('abort', () => aborted.resolve(signal.aborted))
    started.resolve(signal.aborted)
    await aborted.promise
    signal.throwIfAborted()
  })
  await facilities.dispatcher.attach(client, handlers.deliver(client, connector))
  return { onError, started: started.promise, aborted: aborted.promise }
}

/** Bob's request for `archive_note`, who hangs up when `signal` aborts. */
export const invokeRequest = (sessionId: string, signal: AbortSignal, prefix = '/relay') =>
  new Request(`http://relay.test${prefix}/sessions/${sessionId}/actions/archive_note`, {
    method: 'POST',
    headers: { authorization: 'Bearer bob', 'content-type': 'application/json' },
    body: JSON.stringify({ parameters: { id: 7 }, timeout_ms: 60_000 }),
    signal,
  })

export async function createWorld(
  options: Partial<CooperativeSiteRouterOptions> = {},
  facilities = createMemoryFacilities(),
) {
  const sites = createSiteRegistry()
  const sessions = createSessionRegistry({ sites })
  const policy = createSessionPolicy({ sessions })
  const bus = createCooperativeSiteEventBus()
  const connector = createDispatchConnector(facilities)
  const relay = createCooperativeSiteRouter({
    sites,
    sessions,
    bus,
    ingest: facilities.ingest,
    connector,
    policy,
    authenticateHost: whoAsks,
    authenticateViewer: whoAsks,
    prefix: '/relay',
    onError: null,
    ...options,
  })
  onTestFinished(async () => {
    await relay.close()
    await facilities.close()
  })
  await sites.put(notes)
  await facilities.connections.connect({ ...laptop, client_type: 'console' })
  const session: Session = await sessions.open({
    site_id: 'notes',
    owner: 'alice',
    connector: { user_id: 'alice', client_id: 'laptop' },
  })
  await sessions.activate(session.session_id)
  await sessions.share(session.session_id, { user_id: 'bob', rights: ['view', 'invoke'] })
  await sessions.share(session.session_id, { user_id: 'carol', rights: ['view'] })

  /** Asks the relay as `user`, and holds the answer to its document. */
  async function ask(
    user: string | null,
    method: string,
    path: string,
    init: { body?: unknown; headers?: object } = {},
  ) {
    const { body, headers } = init
    const response = await relay(
      new Request(`http://relay.test/relay${path}`, {
        method,
        headers: {
          ...(user === null ? {} : { authorization: `Bearer ${user}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    )
    const { status } = response
    const type = response.headers.get('content-type')
    // The body of an event stream is left to the caller.
    const problem = status >= 400 && method !== 'HEAD' ? { body: await response.clone().json() } : {}
    expectDescribed(DOCUMENT, { method, path: path.split('?')[0] as string, status, type, ...problem })
    return response
  }

  const { session_id } = session
  return { facilities, sites, sessions, policy, bus, connector, relay, session, session_id, ask, onError: null }
}
export type World = Awaited<ReturnType<typeof createWorld>>
