/** The three servers under attack, over memory facilities with something in them, and what opens them. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toNodeHandler } from '../../src/adapters/node-handler.js'
import { startNodeServer } from '../../src/adapters/node-listen.js'
import { startCooperativeSiteControlServer } from '../../src/control-server/index.js'
import {
  createCooperativeSiteEventBus,
  createCooperativeSiteRouter,
  createSessionPolicy,
  createSessionRegistry,
  createSiteRegistry,
} from '../../src/cooperative-site/index.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { apiKeyAuth } from '../../src/internal/http/auth.js'
import { Refusal } from '../../src/internal/refusal.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { createCooperativeSitePublisher } from '../../src/publisher/index.js'
import { PLANTED } from './fuzz-oracle.js'
import type { Targets } from './fuzz-requests.js'

const PREFIX = '/ops/diagnostics'
const USERS = ['alice', 'bob', 'carol', 'dora', 'emil']

/** Small bounds, so that a run passes them and what is kept is bounded. */
const BOUNDS = {
  history: { maxBytes: 4_194_304, maxMessages: 2_000 },
  deduplicator: { capacity: 2_000 },
}

/** Five users with something of each family. @returns their connections. */
async function live(facilities: ReturnType<typeof createMemoryFacilities>): Promise<string[]> {
  const living: string[] = []
  const { connections, contexts, browserWindows, rpc, dispatcher } = facilities
  for (const [i, user_id] of USERS.entries()) {
    const given = { user_id, client_id: 'laptop', instance_id: 'laptop-1', client_type: 'console' as const }
    const connected = await connections.connect({ ...given, actions: ['open', `action-${i}`], metadata: { i } })
    living.push(connected.connection_id)
    await browserWindows.report({ window_id: `win-${i}`, user_id, client_id: 'laptop', focused: true })
    for (let n = 0; n < 3; n++)
      await contexts.report({
        context_id: `ctx-${i}-${n}`,
        user_id,
        client_id: 'laptop',
        client_type: 'browser',
        status: 'idle',
        ownership: n === 0 ? 'user-owned' : 'worker',
        window_id: `win-${i}`,
      })
    const call = await rpc.open({ user_id, client_id: 'laptop', action: 'open', timeout_ms: 600_000 })
    call.result.catch(() => {})
    const command = { user_id, client_id: 'laptop', command_id: `cmd-${i}`, action: 'open' }
    await dispatcher.dispatch({ ...command, payload: { secret: PLANTED }, deadline_ms: 600_000 })
  }
  return living
}

/** Never resolves; ends only when the caller's timeout aborts the signal. */
const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(new Refusal('timeout')), { once: true }),
  )

async function callApplication(action: string, parameters: unknown, signal: AbortSignal): Promise<unknown> {
  if (action === 'explode') throw new Error(PLANTED)
  if (action === 'sleep') return untilAborted(signal)
  if (action === 'nothing') throw new Refusal('connector_unavailable')
  return { archived: parameters }
}

const describe = (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error))

export interface FuzzWorld {
  targets: Targets
  /** Errors reported to our hooks that no injection explains. */
  reported: string[]
  /** Declares again what a request may have taken back, and keeps the connections alive. */
  restore(): Promise<void>
  /** Event streams that are open. */
  readonly streams: number
  close(): Promise<void>
}

async function toWho(request: Request): Promise<{ user_id: string } | null> {
  const user_id = /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '')?.[1]
  return user_id === undefined ? null : { user_id }
}

export async function createFuzzWorld(): Promise<FuzzWorld> {
  const reported: string[] = []
  const facilities = createMemoryFacilities(BOUNDS)
  const living = await live(facilities)
  const sites = createSiteRegistry()
  const sessions = createSessionRegistry({ sites })
  const key = `key-${PLANTED}`
  const token = `token-${PLANTED}`

  const diagnostics = createDiagnosticsRouter({
    ...memoryComposition(facilities),
    auth: apiKeyAuth(key),
    prefix: PREFIX,
    onError: (error) => void reported.push(describe(error)),
  })
  // A host's own server, and one started by the library.
  const hosts = createServer(toNodeHandler(diagnostics)).listen(0, '127.0.0.1')
  await new Promise((resolve) => hosts.once('listening', resolve))

  const relay = createCooperativeSiteRouter({
    sites,
    sessions,
    bus: createCooperativeSiteEventBus(),
    ingest: facilities.ingest,
    connector: { call: (_client, { action, parameters, signal }) => callApplication(action, parameters, signal) },
    policy: createSessionPolicy({ sessions }),
    authenticateHost: toWho,
    authenticateViewer: toWho,
    prefix: '/relay',
    timeoutMs: 200,
    onError: (error) => {
      if (!String(error).includes(PLANTED)) reported.push(describe(error))
    },
  })
  const relayServer = await startNodeServer(relay, { requestMs: 5_000 })
  const publisher = createCooperativeSitePublisher({
    runtime: {
      baseUrl: `${relayServer.url}/relay`,
      identity: () => ({ client_id: 'laptop', instance_id: 'laptop-1' }),
      authorize: (headers) => headers.set('authorization', 'Bearer alice'),
    },
  })
  const control = await startCooperativeSiteControlServer({ token, sites, publisher, owner: 'alice' })

  const action_names = ['archive_note', 'explode', 'sleep', 'nothing']
  const capability_profile = { action_invocation: true }
  const declare = (site_id: string, owner: string) =>
    sites.put({ site_id, owner, mode: 'cooperative', action_names, capability_profile })
  const openSession = async (site_id: string, owner: string) => {
    await declare(site_id, owner)
    const { session_id } = await sessions.open({ site_id, owner, connector: { user_id: owner, client_id: 'laptop' } })
    await sessions.activate(session_id)
    return session_id
  }
  const session_id = await openSession('notes', 'alice')
  await sessions.share(session_id, { user_id: 'bob', rights: ['view', 'invoke'] })
  await sessions.share(session_id, { user_id: 'carol', rights: ['view'] })

  const ask = async (path: string) =>
    (await diagnostics(new Request(`http://localhost${PREFIX}${path}`, { headers: { 'x-admin-key': key } }))).json()
  const { routes } = await ask('/')
  const { items } = await ask('/connections?limit=1')
  const known: Record<string, string> = {
    user_id: 'alice',
    connection_id: items[0].connection_id,
    window_id: 'win-1',
    context_id: 'ctx-1-1',
  }
  const required = '?user_id=alice&client_id=laptop&command_id=cmd-0'
  const ids = (routes as { path: string }[]).map(({ path }) =>
    path.replace(/\{(\w+)\}/g, (_, name: string) => known[name] ?? 'alice'),
  )
  const lists = ['/connections', '/users', '/contexts', '/browser-windows', '/rpc/pending', '/actions']
  const cursors = await Promise.all(lists.map(async (list) => (await ask(`${list}?limit=1`)).next_cursor as string))

  return {
    targets: {
      ports: { diagnostics: (hosts.address() as AddressInfo).port, relay: relayServer.port, control: control.port },
      diagnostics: [
        ...ids.flatMap((path) => [PREFIX + path, `${PREFIX}${path}?user_id=alice`]),
        `${PREFIX}/delivery/status${required}`,
        `${PREFIX}/rpc/instances/laptop-1?user_id=alice&client_id=laptop`,
        `${PREFIX}/history/messages?stream=users%2Falice%2Fsites%2Fnotes%2Fevents`,
      ],
      prefix: PREFIX,
      cursors,
      key,
      token,
      session_id,
      politeSessionId: await openSession('polite-notes', 'dora'),
    },
    async restore() {
      // A long run is longer than the silence after which a connection is taken for lost.
      for (const connection_id of living) await facilities.connections.heartbeat(connection_id)
      await sites.delete('notes')
      await declare('notes', 'alice')
    },
    reported,
    get streams() {
      return relay.streams
    },
    async close() {
      await control.close()
      await relay.close()
      await relayServer.close()
      hosts.closeAllConnections()
      await new Promise((resolve) => hosts.close(resolve))
      await facilities.close()
    },
  }
}
