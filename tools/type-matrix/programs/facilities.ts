/** What a facility does answers a promise, wherever it lives. */
import type { SessionRegistry, SiteEventBus, SiteRegistry } from 'relayscope'
import type { MemoryFacilities } from 'relayscope/memory'
import type { RedisFacilities } from 'relayscope/redis'

const client = { user_id: 'ada', client_id: 'laptop' }
const instance = { ...client, instance_id: 'run-1' }
const message = { ...instance, message_id: 'm', kind: 'event', stream: 's' } as const

export function write(facilities: MemoryFacilities | RedisFacilities): void {
  const { connections, contexts, browserWindows, rpc, deduplicator, history, dispatcher, ingest } = facilities
  connections.connect({ ...instance, client_type: 'console' }).catch(console.error)
  connections.heartbeat('c').then(console.log, console.error)
  connections.disconnect('c').finally(() => {})
  connections.isCurrentInstance(instance).catch(console.error)
  connections.currentInstance(client).catch(console.error)
  contexts.close('c').catch(console.error)
  browserWindows.close('w').catch(console.error)
  rpc.settle('c', { ok: true, result: null }).catch(console.error)
  deduplicator.claim({ ...client, stream: 's', message_id: 'm' }).catch(console.error)
  history.append(message).catch(console.error)
  dispatcher.attach(instance, () => {}).then((waiter) => waiter.detach().catch(console.error), console.error)
  dispatcher.close().then(({ aborted }) => console.log(aborted), console.error)
  ingest(message).catch(console.error)
}

export function cooperate(sites: SiteRegistry, sessions: SessionRegistry, bus: SiteEventBus): void {
  sites.delete('notes').catch(console.error)
  sessions.activate('s').catch(console.error)
  bus.close().catch(console.error)
}
