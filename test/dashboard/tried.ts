/** A world in which a command was tried five times, and its client was lost twice. */
import { connection, createWorld } from '../diagnostics/world.js'

const AT = '2026-01-02T03:04:05.000Z'

/** A command with an attempt after 0, 1, 3, 7 and 15 s, while its client connected and disconnected twice. */
export function triedWorld() {
  const world = createWorld()
  const [first] = world.delivery.statuses ?? []
  if (!first) throw new Error('the world has no command')
  const start = Date.parse(AT) - 60_000
  const at = (seconds: number) => new Date(start + seconds * 1_000).toISOString()
  const items = [0, 1, 3, 7, 15].map((seconds, i) => ({
    number: i + 1,
    at: at(seconds),
    node_id: i < 4 ? 'node-1' : 'node-2',
    instance_id: 'inst-1',
    outcome: 'timed_out' as const,
    ended_at: at(seconds + 0.9),
    reason: 'ack_timeout' as const,
  }))
  const last = { last_at: at(15), last_node_id: 'node-2', last_outcome: 'timed_out' } as const
  const tried = {
    ...first,
    command_id: 'cmd-tried',
    admission: { ...first.admission, at: at(0), deadline_at: at(28) },
    attempts: { ...first.attempts, count: 5, confirmed: 5, ...last, items, omitted: 0 },
    acknowledgement: { state: 'none' as const, at: null, instance_id: null },
    terminal: { state: 'failed' as const, reason: 'attempts_exhausted' as const, at: at(28) },
  }
  const ended = (connection_id: string, from: number, to: number) =>
    connection({
      connection_id,
      client_id: 'desk',
      status: 'disconnected',
      connected_at: at(from),
      disconnected_at: at(to),
      ended_reason: 'heartbeat_lost',
    })
  const connections = [ended('conn-a', -9, 2), ended('conn-b', 4, 9)]
  return { ...world, connections, delivery: { ...world.delivery, statuses: [tried] } }
}
