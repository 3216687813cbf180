/** The contract suite of an RPC correlator's inspector. */
import { PendingCall, type RpcInspector, tellCall } from '../contract/rpc.js'
import { ASK, type ContractCase, check, checkEqual, checkSettles } from './expect.js'
import { listCases, type MakeInspector, NOBODY, walk } from './lists.js'
import { userCases } from './users.js'

/** Holds a correlator's inspector to its contract. `make` gives one with the same calls each time. */
export function rpcContract(make: MakeInspector<RpcInspector>): ContractCase[] {
  return [
    ...listCases<RpcInspector, PendingCall>(make, {
      name: 'listPending',
      list: (rpc, filter) => (page, ask) => rpc.listPending(filter, page, ask),
      item: PendingCall,
      id: 'correlation_id',
      filters: ['user_id', 'client_id', 'action'],
      get: (rpc, id, ask) => rpc.getPending(id, ask),
    }),
    ...userCases<RpcInspector, PendingCall>(make, {
      list: (rpc, page, ask) => rpc.listPending({}, page, ask),
      tell: tellCall,
    }),
    { name: 'checkInstance says current of the current instance alone', run: () => checkInstances(make) },
  ]
}

async function checkInstances(make: MakeInspector<RpcInspector>): Promise<void> {
  const rpc = await make()
  if (!rpc?.checkInstance) return
  const calls = await walk<PendingCall>((page, ask) => rpc.listPending({}, page, ask), 100, 'listPending')
  const clients = [{ user_id: NOBODY, client_id: NOBODY, instance_id: NOBODY }, ...calls.slice(0, 20)]
  for (const { user_id, client_id, instance_id } of clients)
    for (const asked of [instance_id ?? NOBODY, NOBODY]) {
      const { current, current_instance_id } = await rpc.checkInstance({ user_id, client_id, instance_id: asked }, ASK)
      checkEqual(current, current_instance_id === asked, `checkInstance contradicts itself about ${asked}`)
      check(asked !== NOBODY || !current, 'checkInstance says current of an instance that nobody has')
    }
  const nobody = { user_id: NOBODY, client_id: NOBODY, instance_id: NOBODY }
  await checkSettles((ask) => rpc.checkInstance?.(nobody, ask), 'checkInstance')
}
