/** The contract suite of an RPC correlator's inspector. */
import type { Instance } from '../contract/connections.js'
import { PendingCall, PendingCallFilter, RPC_FAMILY, type RpcInspector } from '../contract/rpc.js'
import { ASK, type ContractCase, check, checkEnds, checkEqual, notTested, toCases } from './expect.js'
import { CLIENT, FAKE_TIME, fill, find, INSTANCE, type Make, type Partly, pageOf } from './fake-records.js'
import { NOBODY } from './filters.js'
import { listCases, type MakeInspector, walk } from './lists.js'
import { userCases } from './users.js'

/** Holds a correlator's inspector to its contract. `make` gives one with the same calls each time. */
export function rpcContract(make: MakeInspector<RpcInspector>): ContractCase[] {
  return toCases([
    ...listCases<RpcInspector, PendingCall>(make, {
      name: 'listPending',
      list: (rpc, filter) => (page, ask) => rpc.listPending(filter, page, ask),
      item: PendingCall,
      id: 'correlation_id',
      filters: PendingCallFilter.keyof().options,
      get: (rpc, id, ask) => rpc.getPending(id, ask),
    }),
    ...userCases(make, RPC_FAMILY.users),
    { name: 'checkInstance says current of the current instance alone', run: () => checkInstances(make) },
  ])
}

async function checkInstances(make: MakeInspector<RpcInspector>): Promise<void> {
  const rpc = await make()
  if (!rpc?.checkInstance) return notTested('there is no checkInstance')
  const calls = await walk<PendingCall>((page, ask) => rpc.listPending({}, page, ask), 100, 'listPending')
  const clients = [{ user_id: NOBODY, client_id: NOBODY, instance_id: NOBODY }, ...calls.slice(0, 20)]
  for (const { user_id, client_id, instance_id } of clients)
    for (const id of [instance_id ?? NOBODY, NOBODY]) {
      const { current, current_instance_id } = await rpc.checkInstance({ user_id, client_id, instance_id: id }, ASK)
      checkEqual(current, current_instance_id === id, `checkInstance contradicts itself about ${id}`)
      check(id !== NOBODY || !current, 'checkInstance must not say current of an instance that nobody has')
    }
  const nobody = { user_id: NOBODY, client_id: NOBODY, instance_id: NOBODY }
  await checkEnds((ask) => rpc.checkInstance?.(nobody, ask), 'checkInstance')
}

/** What the fakes know of calls. */
export interface RpcWorld {
  calls?: Partly<PendingCall>[]
  /** The current instances; makes the correlator check them. */
  instances?: Partly<Instance>[]
}

const toCall: Make<PendingCall> = (given, place) =>
  fill(
    {
      ...CLIENT,
      correlation_id: `call-${place}`,
      action: 'action-1',
      instance_id: null,
      started_at: FAKE_TIME,
      deadline_at: null,
      age_ms: 0,
    },
    given,
  )

const toInstance: Make<Instance> = (given) => fill(INSTANCE, given)

export function fakeRpc(world: RpcWorld): RpcInspector | undefined {
  if (!world.calls && !world.instances) return undefined
  return {
    listPending: (filter, page) => pageOf(toCall, world.calls, filter, page),
    getPending: (correlation_id) => find(toCall, world.calls, { correlation_id }),
    ...(world.instances && {
      checkInstance({ user_id, client_id, instance_id }) {
        const current = find(toInstance, world.instances, { user_id, client_id })?.instance_id ?? null
        return { current: current === instance_id, current_instance_id: current }
      },
    }),
  }
}
