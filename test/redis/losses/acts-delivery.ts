/** The calls of the dispatcher, from the admission of a command to its end. */
import { expect } from 'vitest'
import { shardOf } from '../../../src/redis/store/keys.js'
import { ASK, walk } from '../../contract/clock.js'
import { command, connection, first, key, second } from '../../contract/delivery-commands.js'
import { soon } from '../wait-for.js'
import { act, type Node, SHARDS, type World } from './act.js'

/** A scope whose reservations lie in another shard than the command. */
const scope_id = ['red', 'green', 'blue', 'black'].find((name) => shardOf(name, SHARDS) !== shardOf('ada', SHARDS))
const long = { deadlineMs: 600_000, scope_id, maxAttempts: 50 }

const statusOf = async ({ near }: World, id = 'c1') => near.dispatcher().inspector.status(key(id), ASK)
async function reserved({ near }: World) {
  const tenants = await walk((page) => near.dispatcher().inspector.listTenants(page, ASK))
  return tenants.reduce((sum, { reserved_commands }) => sum + reserved_commands, 0)
}
/** A tab that waits at `node`. */
async function waiting(node: Node, instance = first) {
  const tab = connection()
  const waiter = await node.dispatcher().attach(instance, tab.deliver)
  return { ...tab, waiter }
}
type Tab = Pick<Awaited<ReturnType<typeof waiting>>, 'ids'>

/** Whether what is admitted elsewhere reaches the tab, and what had been admitted before as well. */
async function reached({ near }: World, { ids }: Tab, ...before: string[]) {
  await near.dispatcher().dispatch(command('next', { ...long, requireWaiter: true }))
  await soon(() => expect(ids()).toEqual(expect.arrayContaining([...before, 'next'])))
  return 1
}

/** A command that has been handed over. */
async function delivered({ far, near }: World) {
  const tab = await waiting(far)
  await near.dispatcher().dispatch(command('c1', { ...long, scope_id: undefined }))
  await soon(() => expect(tab.ids()).toContain('c1'))
  return tab
}

/** The one end of the command and of its reservation. */
async function ended(world: World, state: string) {
  const status = await statusOf(world)
  if (status?.terminal?.state !== state) return 0
  await soon(async () => expect(await reserved(world)).toBe(0))
  const shard = shardOf('ada', SHARDS)
  return Number(await world.ask('ZCARD', world.near.store().key(shard, 'delivery', 'ended')))
}

export const DELIVERY_ACTS = [
  act({
    call: 'CommandDispatcher.attach',
    prepare: ({ near }) => near.dispatcher().dispatch(command('c1', long)),
    async run({ far }) {
      return waiting(far)
    },
    effects: async (world, _state, tab) => (tab ? reached(world, tab, 'c1') : 0),
  }),
  act({
    call: 'CommandDispatcher.attach',
    about: 'and a newer instance attaches',
    prepare: () => connection(),
    run: ({ far }) => far.dispatcher().attach(first, () => {}),
    overtake: ({ near }, tab) => near.dispatcher().attach(second, tab.deliver),
    effects: (world, tab) => reached(world, tab),
  }),
  act({
    call: 'CommandDispatcher.attach',
    about: 'and detaches',
    prepare: ({ far }) => waiting(far),
    run: (_world, { waiter }) => waiter.detach(),
    async effects({ near }) {
      const tab = await waiting(near, second)
      return reached({ near } as World, tab)
    },
  }),
  act({
    call: 'CommandDispatcher.dispatch',
    prepare: ({ near }) => waiting(near),
    run: ({ far }) => far.dispatcher().dispatch(command('c1', long)),
    async effects(world, { ids }) {
      if ((await statusOf(world)) === null) return 0
      await soon(() => expect(ids()).toContain('c1'))
      return reserved(world)
    },
  }),
  act({
    call: 'CommandDispatcher.dispatch',
    about: 'that is refused',
    run: ({ far }) => far.dispatcher().dispatch(command('c1', { ...long, deadlineMs: 1_500, requireWaiter: true })),
    // A reservation in another shard that could not be given back goes with the deadline.
    async effects(world) {
      const status = await statusOf(world)
      await soon(async () => expect(await reserved(world)).toBe(0))
      return Number(status?.terminal?.reason === 'no_waiter')
    },
  }),
  act({
    call: 'CommandDispatcher.dispatch',
    about: 'at another node than that of the client',
    prepare: ({ far }) => waiting(far),
    async run({ near }, { ids }) {
      await near.dispatcher().dispatch(command('c1', long))
      await soon(() => expect(ids()).toContain('c1'))
    },
    async effects(world, tab) {
      await soon(async () => expect((await statusOf(world))?.attempts.confirmed).toBeGreaterThan(0))
      const { count, confirmed } = (await statusOf(world))?.attempts ?? { count: 0, confirmed: 0 }
      expect(confirmed).toBeLessThanOrEqual(count)
      return reached(world, tab)
    },
  }),
  act({
    call: 'CommandDispatcher.acknowledge',
    prepare: delivered,
    run: ({ far }) => far.dispatcher().acknowledge({ ...first, command_id: 'c1' }),
    effects: async (world) => Number((await statusOf(world))?.acknowledgement.state === 'acknowledged'),
  }),
  act({
    call: 'CommandDispatcher.settle',
    prepare: delivered,
    run: ({ far }) => far.dispatcher().settle({ ...key('c1'), state: 'resulted' }),
    effects: (world) => ended(world, 'resulted'),
  }),
  act({
    call: 'CommandDispatcher.cancel',
    prepare: delivered,
    run: ({ far }) => far.dispatcher().cancel(key('c1')),
    effects: (world) => ended(world, 'cancelled'),
  }),
  act({
    call: 'CommandDispatcher.reconcile',
    prepare: delivered,
    run: ({ far }) => far.dispatcher().reconcile(),
    // It was delivered before: also by a pass that never ran.
    overtake: async () => {},
    effects: (world, tab) => reached(world, tab),
  }),
  act({
    call: 'CommandDispatcher.close',
    prepare: delivered,
    run: ({ far }) => far.dispatcher().close(),
    async effects(world) {
      return reached(world, await waiting(world.near, second), 'c1')
    },
  }),
  act({
    call: 'Facilities.close',
    about: 'after a pass that sweeps',
    async prepare({ far }) {
      await far.facilities().connections.connect({ ...first, client_type: 'web' })
    },
    run: ({ far }) => far.facilities().dispatcher.reconcile(),
  }),
]
