/** relayscope in small: one family, one route, one kind of evidence. docs/architecture.md says where its parts are in the real code. */
import * as z from 'zod'

// #region contract
// Contract: the record. Every field says what it means, and an unknown value is null.
const time = z.iso.datetime().nullable()
export const Command = z.object({
  command_id: z.string().describe('Id of the command.'),
  client_id: z.string().describe('The client that it is for.'),
  state: z.enum(['waiting', 'delivered', 'acknowledged', 'expired']).describe('How far it came.'),
  dispatched_at: z.iso.datetime().describe('When it was dispatched.'),
  delivered_at: time.describe('When the connection took it; null if it did not. It proves no effect.'),
  acknowledged_at: time.describe('When the client reported that it has it; null if it did not.'),
})
const Page = z.object({
  items: z.array(Command),
  next_cursor: z.string().nullable(),
  examined: z.int().describe('How many records were read.'),
  complete: z.boolean().describe('Whether the limit of examined records was not reached.'),
})
// #endregion

// #region facility
/** Facility: what the host writes to. It is bounded, and a command ends by its lease if the client never answers. */
export function createCommands({ now = Date.now, maxCommands = 1_000, leaseMs = 30_000 } = {}) {
  const commands = new Map()
  const waiters = new Map()
  const at = (ms) => (ms === null ? null : new Date(ms).toISOString())

  const stateOf = ({ dispatched, delivered, acknowledged }) => {
    if (acknowledged !== null) return 'acknowledged'
    if (now() >= dispatched + leaseMs) return 'expired'
    return delivered === null ? 'waiting' : 'delivered'
  }

  const hasEnded = (entry) => ['acknowledged', 'expired'].includes(stateOf(entry))

  return {
    /** Attaches a connection. `deliver` resolves when the connection has taken the command. */
    attach: (client_id, deliver) => void waiters.set(client_id, deliver),
    async dispatch(command_id, client_id) {
      if (commands.has(command_id)) return // The same id is the same command: a repeated dispatch is harmless.
      for (const [id, entry] of commands) if (commands.size >= maxCommands && hasEnded(entry)) commands.delete(id)
      if (commands.size >= maxCommands) throw new Refusal('capacity_exceeded')
      const entry = { client_id, dispatched: now(), delivered: null, acknowledged: null }
      commands.set(command_id, entry)
      await waiters.get(client_id)?.(command_id)
      if (waiters.has(client_id)) entry.delivered = now()
    },
    /** @returns whether it counted: not after the end, not twice, not for another client's command. */
    acknowledge(command_id, client_id) {
      const entry = commands.get(command_id)
      if (entry?.client_id !== client_id || hasEnded(entry)) return false
      entry.acknowledged = now()
      return true
    },
    // Inspector: the router's view. It only reads, in a stable order, and examines at most `budget` records.
    inspector: {
      list({ client_id }, { limit, cursor }, { budget }) {
        const ids = [...commands.keys()].sort().filter((id) => cursor === null || id > cursor)
        const items = []
        let examined = 0
        for (const command_id of ids) {
          if (items.length === limit || examined === budget) break
          examined++
          const entry = commands.get(command_id)
          if (client_id !== undefined && entry.client_id !== client_id) continue
          const { dispatched, delivered, acknowledged } = entry
          const times = [dispatched, delivered, acknowledged].map(at)
          const [dispatched_at, delivered_at, acknowledged_at] = times
          items.push({
            command_id,
            client_id: entry.client_id,
            state: stateOf(entry),
            dispatched_at,
            delivered_at,
            acknowledged_at,
          })
        }
        const complete = examined < budget || examined === ids.length
        return { items, next_cursor: examined < ids.length ? ids[examined - 1] : null, examined, complete }
      },
    },
  }
}
// #endregion

// #region refusal
/** An error code inside the program. Only the router knows its status. */
export class Refusal extends Error {
  constructor(code) {
    super(code)
    this.code = code
  }
}
const STATUS = {
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  invalid_query: 422,
  not_deployed: 501,
  internal: 500,
}
// #endregion

// #region route
/** Routes are data: the index, the 501s and the tests read the same table. */
const Query = z.strictObject({
  client_id: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  cursor: z.string().nullable().default(null),
})
export const ROUTES = [
  {
    path: '/commands',
    requires: 'commands',
    schema: Page,
    read: ({ commands }, { client_id, limit, cursor }, ctx) => commands.list({ client_id }, { limit, cursor }, ctx),
  },
]
// #endregion

// #region router
/** The router: path, key, route, inspector, query, answer, in this order. A caller without the key learns nothing else. */
export function createRouter({ inspectors, key, prefix = '', budget = 500, onError = console.error }) {
  function answer(request) {
    const { pathname, searchParams } = new URL(request.url)
    if (request.headers.get('x-admin-key') !== key) throw new Refusal('forbidden')
    const route = ROUTES.find(({ path }) => prefix + path === pathname)
    if (!route) throw new Refusal('not_found')
    if (request.method !== 'GET') throw new Refusal('method_not_allowed')
    if (!inspectors[route.requires]) throw new Refusal('not_deployed')
    const query = Query.safeParse(Object.fromEntries(searchParams))
    if (!query.success) throw new Refusal('invalid_query')
    // Through the schema, so that a field that it does not have never leaves.
    return route.schema.parse(route.read(inspectors, query.data, { budget }))
  }

  return async (request) => {
    try {
      return Response.json(answer(request))
    } catch (error) {
      const code = error instanceof Refusal ? error.code : 'internal'
      if (code === 'internal') onError(error)
      // A thrown message never leaves the process.
      return Response.json({ code, status: STATUS[code] }, { status: STATUS[code] })
    }
  }
}
// #endregion
