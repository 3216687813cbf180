/** The calls about who is there: connections, contexts, windows, sites and sessions. */
import { expect } from 'vitest'
import type { ConnectionChurn } from '../../../src/contract/connections.js'
import { ASK, walk } from '../../contract/clock.js'
import { notes } from '../../contract/sites.js'
import { listIn, stream } from '../../contract/subscriptions.js'
import { soon } from '../wait-for.js'
import { act, type World } from './act.js'

const client = { user_id: 'ada', client_id: 'tab', client_type: 'web' as const }
const connect = ({ near }: World, instance_id: string) => near.connections().connect({ ...client, instance_id })
const connected = ({ near }: World) =>
  walk((page) => near.connections().inspector.listConnections({ user_id: 'ada', status: 'connected' }, page, ASK))
const context = { context_id: 'x1', ...client, status: 'idle' as const, ownership: 'worker' as const }
const contextOf = async ({ near }: World, id = 'x1') => near.contexts().inspector.getContext(id, ASK)
const contexts = ({ near }: World) => walk((page) => near.contexts().inspector.listContexts({}, page, ASK))
const window = { window_id: 'w1', user_id: 'ada', client_id: 'tab' }
const opened = async ({ near }: World) =>
  (await near.sessions().open({ site_id: 'notes', owner: 'alice' })).session_id as string
const state = async ({ near }: World, id: string) => (await near.sessions().get(id))?.state
const live = async ({ ask, near }: World) => {
  const counts = [0, 1].map((shard) => ask('ZCARD', near.store().key(shard, 'sessions', 'live')))
  return (await Promise.all(counts)).reduce((sum, count) => sum + Number(count), 0)
}
const share = { user_id: 'bob', rights: ['view' as const] }

/** How many connections have been made and not ended, by what is counted of each minute. */
async function counted({ near }: World) {
  const { items } = (await near.connections().inspector.connectionChurn?.({}, ASK)) as ConnectionChurn
  const ended = items.flatMap((one) => Object.entries(one.ended))
  const endedAs = (reason?: string) =>
    ended.reduce((sum, [as, count]) => sum + (reason === undefined || reason === as ? count : 0), 0)
  return { left: items.reduce((sum, { opened }) => sum + opened, 0) - endedAs(), endedAs }
}

/** Told of within half a second, or with the next report of all where that was lost. */
const watched = ({ near }: World, count: number) =>
  soon(async () => expect(await listIn(near.subscriptions())).toHaveLength(count))

export const PRESENCE_ACTS = [
  act({
    call: 'SubscriptionRegistry.add',
    isOnce: true,
    async run(world) {
      world.far.subscriptions().add(stream('v1'))
      await watched(world, 1)
    },
    effects: async ({ near }) => (await listIn(near.subscriptions())).length,
  }),
  act({
    call: 'SubscriptionRegistry.close',
    async prepare(world) {
      world.far.subscriptions().add(stream('v1'))
      await watched(world, 1)
    },
    run: ({ far }) => far.subscriptions().close(),
  }),
  act({
    call: 'ConnectionRegistry.connect',
    run: ({ far }) => far.connections().connect({ ...client, instance_id: 'i2' }),
    async effects(world) {
      const there = (await connected(world)).filter(({ instance_id }) => instance_id === 'i2').length
      expect((await counted(world)).left).toBe(there)
      return there
    },
  }),
  act({
    call: 'ConnectionRegistry.connect',
    about: 'and a newer instance comes',
    prepare: (world) => connect(world, 'i1'),
    run: ({ far }) => far.connections().connect({ ...client, instance_id: 'i2' }),
    overtake: (world) => connect(world, 'i3'),
    async effects(world) {
      expect(await world.near.connections().currentInstance(client)).toBe('i3')
      return (await connected(world)).length
    },
  }),
  act({
    call: 'ConnectionRegistry.heartbeat',
    prepare: ({ far }) => far.connections().connect({ ...client, instance_id: 'i1' }),
    run: ({ far }, { connection_id }) => far.connections().heartbeat(connection_id),
    effects: async (_world, _state, isThere) => Number(isThere === true),
  }),
  act({
    call: 'ConnectionRegistry.disconnect',
    prepare: async (world) => connect(world, 'i1'),
    run: ({ far }, { connection_id }) => far.connections().disconnect(connection_id, 'client_closed'),
    async effects(world, { connection_id }) {
      const events = await walk(async (page) => {
        const answer = await world.near.connections().inspector.listConnectionHistory?.(connection_id, page, ASK)
        if (!answer) throw new Error('no such connection')
        return answer
      })
      const ended = events.filter(({ event }) => event === 'disconnected').length
      expect((await counted(world)).endedAs('client_closed')).toBe(ended)
      return ended
    },
  }),
  act({
    call: 'ConnectionRegistry.disconnect',
    about: 'and the instance comes back',
    prepare: async (world) => connect(world, 'i1'),
    run: ({ far }, { connection_id }) => far.connections().disconnect(connection_id, 'client_closed'),
    overtake: (world) => connect(world, 'i1'),
    effects: async (world) => (await connected(world)).length,
  }),
  act({
    call: 'ConnectionRegistry.currentInstance',
    prepare: (world) => connect(world, 'i1'),
    run: ({ far }) => far.connections().currentInstance(client),
    effects: async (_world, _state, current) => Number(current === 'i1'),
  }),
  act({
    call: 'ConnectionRegistry.isCurrentInstance',
    prepare: (world) => connect(world, 'i1'),
    run: ({ far }) => far.connections().isCurrentInstance({ ...client, instance_id: 'i1' }),
    effects: async (_world, _state, isCurrent) => Number(isCurrent === true),
  }),
  act({
    call: 'ContextRegistry.report',
    run: ({ far }) => far.contexts().report(context),
    effects: async (world) => (await contexts(world)).length,
  }),
  act({
    call: 'ContextRegistry.report',
    about: 'that is refused, and leaves its id to others',
    prepare: ({ near }) => near.contexts().report({ ...context, context_id: 'x0' }),
    run: ({ far }) => far.fewContexts().report({ ...context, context_id: 'x3' }),
    refused: 'capacity_exceeded',
    // Whoever comes next may have the id.
    async overtake({ far, near }) {
      const refused = async () => (await far.fewContexts().report({ ...context, context_id: 'x3' })).status
      await soon(async () => expect(await refused().catch(({ code }) => code)).toBe('capacity_exceeded'))
      await near.contexts().report({ ...context, context_id: 'x3', client_id: 'other' })
    },
    effects: async (world) => (await contexts(world)).length - 1,
  }),
  act({
    call: 'ContextRegistry.close',
    prepare: ({ near }) => near.contexts().report(context),
    run: ({ far }) => far.contexts().close('x1'),
    effects: async (world) => Number((await contextOf(world))?.status === 'closed'),
  }),
  act({
    call: 'ContextRegistry.assignTask',
    prepare: ({ near }) => near.contexts().report(context),
    run: ({ far }) => far.contexts().assignTask('x1', 't1'),
    effects: async (world) => Number((await contextOf(world))?.task_id === 't1'),
  }),
  act({
    call: 'ContextRegistry.releaseTask',
    async prepare({ near }) {
      await near.contexts().report(context)
      await near.contexts().assignTask('x1', 't1')
    },
    run: ({ far }) => far.contexts().releaseTask('x1'),
    overtake: ({ near }) => near.contexts().assignTask('x1', 't2'),
    effects: async (world) => Number((await contextOf(world))?.task_id === 't2'),
  }),
  act({
    call: 'BrowserWindowRegistry.report',
    run: ({ far }) => far.windows().report(window),
    effects: async ({ near }) =>
      (await walk((page) => near.windows().inspector.listBrowserWindows({}, page, ASK))).length,
  }),
  act({
    call: 'BrowserWindowRegistry.close',
    prepare: ({ near }) => near.windows().report(window),
    run: ({ far }) => far.windows().close('w1'),
    effects: async ({ near }) =>
      Number((await near.windows().inspector.getBrowserWindow('w1', ASK))?.status === 'closed'),
  }),
  act({
    call: 'SiteRegistry.put',
    run: ({ far }) => far.sites().put(notes),
    overtake: ({ near }) => near.sites().put({ ...notes, title: 'Later' }),
    effects: async ({ near }) => Number((await near.sites().get('notes'))?.title === 'Later'),
  }),
  act({
    call: 'SiteRegistry.get',
    prepare: ({ near }) => near.sites().put(notes),
    run: ({ far }) => far.sites().get('notes'),
    effects: async (_world, _state, site) => Number(site?.site_id === 'notes'),
  }),
  act({
    call: 'SiteRegistry.delete',
    prepare: ({ near }) => near.sites().put(notes),
    run: ({ far }) => far.sites().delete('notes'),
    overtake: ({ near }) => near.sites().put({ ...notes, owner: 'bob' }),
    effects: async ({ near }) => Number((await near.sites().get('notes'))?.owner === 'bob'),
  }),
  act({
    call: 'SessionRegistry.open',
    isOnce: true,
    run: ({ far }) => far.sessions().open({ site_id: 'notes', owner: 'alice' }),
    effects: live,
  }),
  act({
    call: 'SessionRegistry.activate',
    done: 'invalid_transition',
    prepare: opened,
    run: ({ far }, id) => far.sessions().activate(id),
    effects: async (world, id) => Number((await state(world, id)) === 'active'),
  }),
  act({
    call: 'SessionRegistry.suspend',
    done: 'invalid_transition',
    async prepare(world) {
      const id = await opened(world)
      await world.near.sessions().activate(id)
      return id
    },
    run: ({ far }, id) => far.sessions().suspend(id),
    overtake: async ({ near }, id) => near.sessions().activate(id),
    effects: async (world, id) => Number((await state(world, id)) === 'active'),
  }),
  act({
    call: 'SessionRegistry.close',
    done: 'invalid_transition',
    prepare: opened,
    run: ({ far }, id) => far.sessions().close(id, 'done'),
    effects: async (world, id) => Number((await state(world, id)) === 'closed' && (await live(world)) === 0),
  }),
  act({
    call: 'SessionRegistry.get',
    prepare: opened,
    run: ({ far }, id) => far.sessions().get(id),
    effects: async (_world, id, session) => Number(session?.session_id === id),
  }),
  act({
    call: 'SessionRegistry.share',
    prepare: opened,
    run: ({ far }, id) => far.sessions().share(id, share),
    effects: async ({ near }, id) => Number((await near.sessions().getShare(id, 'bob')) !== null),
  }),
  act({
    call: 'SessionRegistry.unshare',
    async prepare(world) {
      const id = await opened(world)
      await world.near.sessions().share(id, share)
      return id
    },
    run: ({ far }, id) => far.sessions().unshare(id, 'bob'),
    overtake: async ({ near }, id) => near.sessions().share(id, { ...share, rights: ['invoke'] }),
    effects: async ({ near }, id) =>
      (await near.sessions().getShare(id, 'bob'))?.rights.filter((right) => right === 'invoke').length ?? 0,
  }),
  act({
    call: 'SessionRegistry.getShare',
    async prepare(world) {
      const id = await opened(world)
      await world.near.sessions().share(id, share)
      return id
    },
    run: ({ far }, id) => far.sessions().getShare(id, 'bob'),
    effects: async (_world, _id, found) => Number(found?.user_id === 'bob'),
  }),
  act({
    call: 'SessionRegistry.watch',
    prepare: opened,
    async run({ far, near }, id) {
      const heard: string[] = []
      const stop = far.sessions().watch(id, () => void heard.push(id))
      await near.sessions().activate(id)
      return { heard, stop }
    },
  }),
  act({
    call: 'SessionRegistry.disconnect',
    run: ({ far }) => far.sessions().disconnect(),
  }),
]
