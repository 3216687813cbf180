/** Both compositions for the tests of plugs: facilities to feed, and a router that is asked what they show. */
import { afterAll, beforeAll, describe } from 'vitest'
import { createDiagnosticsRouter, type Inspectors, noopAuth } from '../../src/index.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { createRedisFacilities, redisComposition } from '../../src/redis/index.js'
import { inspectorContract } from '../../src/testing/index.js'
import { clients, describeRedis, type Server, startServer } from '../redis/server.js'
import { soon } from '../redis/wait-for.js'

type Facilities = Pick<ReturnType<typeof createMemoryFacilities>, 'connections' | 'contexts' | 'browserWindows' | 'rpc'>

export interface World {
  facilities: Facilities
  /** The facilities of another node of the deployment; in memory there is one. */
  another(): Promise<Facilities>
  inspectors: Inspectors
  /** The body of an answer of the router. */
  ask<T>(path: string): Promise<T>
  /** All items of a list, page by page. */
  list<T>(path: string): Promise<T[]>
  close(): Promise<void>
}

interface RouterPage<T> {
  items: T[]
  next_cursor: string | null
}

function asking(router: (request: Request) => Promise<Response>): Pick<World, 'ask' | 'list'> {
  async function ask<T>(path: string): Promise<T> {
    const response = await router(new Request(`http://relay${path}`))
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`)
    return (await response.json()) as T
  }
  async function list<T>(path: string): Promise<T[]> {
    const items: T[] = []
    let cursor: string | null = null
    do {
      const query: string = `${path.includes('?') ? '&' : '?'}limit=500${cursor ? `&cursor=${cursor}` : ''}`
      const page: RouterPage<T> = await ask(`${path}${query}`)
      items.push(...page.items)
      cursor = page.next_cursor
    } while (cursor)
    return items
  }
  return { ask, list }
}

export function createMemoryWorld(): World {
  const facilities = createMemoryFacilities()
  const composition = memoryComposition(facilities)
  const router = createDiagnosticsRouter({ ...composition, auth: noopAuth(), onError: null })
  return {
    facilities,
    inspectors: composition.inspectors,
    another: async () => facilities,
    ...asking(router),
    close: async () => void (await facilities.close()),
  }
}

let deployments = 0

/** A deployment of its own in the store at `port`. */
export async function createRedisWorld(port: number): Promise<World> {
  const deploymentId = `plugs-${++deployments}`
  const opened: (() => Promise<unknown>)[] = []
  async function node(nodeId: string) {
    const { client, close } = await clients.ioredis([port])
    const facilities = createRedisFacilities({ client, deploymentId, nodeId, onError: null })
    opened.push(() => facilities.close(), close)
    return { client, facilities }
  }
  const { client, facilities } = await node('node-1')
  const composition = redisComposition({ client, deploymentId, onError: null })
  const router = createDiagnosticsRouter({ ...composition, auth: noopAuth(), onError: null })
  return {
    facilities,
    inspectors: composition.inspectors,
    another: async () => (await node(`node-${opened.length}`)).facilities,
    ...asking(router),
    async close() {
      for (const end of opened) await end()
    },
  }
}

/** Runs `body` over each composition; `open` creates an empty world. */
export function describeWorlds(name: string, body: (open: () => Promise<World>) => void): void {
  describe(`${name} in memory`, () => body(async () => createMemoryWorld()))
  describeRedis(`${name} in a shared store`, () => {
    let server: Server
    beforeAll(async () => {
      server = await startServer()
    })
    afterAll(() => server?.stop())
    body(() => createRedisWorld(server.port))
  })
}

/** Lets calls of `method` wait until `over`. */
function holdBack<Target extends object>(target: Target, method: keyof Target, over: Promise<void>): void {
  const call = target[method] as (...given: unknown[]) => unknown
  const later = async (...given: unknown[]) => {
    await over
    return call.apply(target, given)
  }
  target[method] = later as never
  void over.then(() => {
    target[method] = call as never
  })
}

/**
 * Holds what a plug has fed to the contract of its inspectors. Meanwhile its heartbeats wait: on a busy machine, one falls
 * between two answers that are compared.
 */
export async function keepContract({ inspectors, facilities }: World): Promise<void> {
  const { registry, contextRegistry, browserWindowRegistry } = inspectors
  const fed = { registry, contextRegistry, browserWindowRegistry }
  let end = () => {}
  const over = new Promise<void>((resolve) => {
    end = resolve
  })
  holdBack(facilities.connections, 'heartbeat', over)
  holdBack(facilities.contexts, 'report', over)
  holdBack(facilities.browserWindows, 'report', over)
  try {
    for (const { run } of inspectorContract(() => fed)) await run()
  } finally {
    end()
  }
}

/** What a peer says of one connection, as `user/client/instance`. */
export const nameOf = (identity: { user_id: string; client_id: string; instance_id: string }) =>
  `${identity.user_id}/${identity.client_id}/${identity.instance_id}`

/** Waits until the router shows as connected what `peers` says, and nothing else. */
export async function agree(world: World, peers: () => Iterable<string> | Promise<Iterable<string>>): Promise<void> {
  await soon(async () => {
    const shown = await world.list<{ user_id: string; client_id: string; instance_id: string }>(
      '/connections?status=connected',
    )
    const [there, seen] = [[...(await peers())].sort(), shown.map(nameOf).sort()]
    if (JSON.stringify(there) !== JSON.stringify(seen))
      throw new Error(
        `the peer has ${there.length}: ${there.slice(0, 5)}; shown are ${seen.length}: ${seen.slice(0, 5)}`,
      )
  })
}
