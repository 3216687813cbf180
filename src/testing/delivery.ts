/** The contract suite of a dispatcher's inspector: its evidence, and that no payload is part of it. */
import {
  type CommandKey,
  type DeliveryInspector,
  DeliveryNode,
  DeliveryStatus,
  DeliverySummary,
  DeliveryTenant,
} from '../contract/delivery.js'
import { ASK, type ContractCase, check, checkEqual, checkExact, checkSettles, orRefusal } from './expect.js'
import { listCases, type MakeInspector, NOBODY } from './lists.js'

/** Holds a delivery inspector to its contract. `commands`: retained commands, for they cannot be listed. */
export function deliveryContract(
  make: MakeInspector<DeliveryInspector>,
  { commands = [] }: { commands?: readonly CommandKey[] } = {},
): ContractCase[] {
  const of = (work: (delivery: DeliveryInspector) => Promise<void>) => async () => {
    const delivery = await make()
    if (delivery) await work(delivery)
  }
  return [
    {
      name: 'summary counts what is tracked, and carries no payload',
      run: of(async (delivery) => {
        const summary = await delivery.summary(ASK)
        checkExact(DeliverySummary, summary, 'summary')
        check(summary.due_commands <= summary.tracked_commands, 'more commands are due than tracked')
        check(summary.sample_size <= summary.tracked_commands, 'more commands were sampled than are tracked')
        await checkSettles((ask) => delivery.summary(ask), 'summary')
      }),
    },
    ...listCases<DeliveryInspector, DeliveryNode>(make, {
      name: 'listNodes',
      list: (delivery) => (page, ask) => delivery.listNodes(page, ask),
      item: DeliveryNode,
      exact: true,
      id: 'node_id',
    }),
    ...listCases<DeliveryInspector, DeliveryTenant>(make, {
      name: 'listTenants',
      list: (delivery) => (page, ask) => delivery.listTenants(page, ask),
      item: DeliveryTenant,
      exact: true,
      id: 'scope_id',
    }),
    {
      name: 'status answers the evidence of the command asked for, and no payload',
      run: of(async (delivery) => {
        for (const { user_id, client_id, command_id } of commands) {
          const key = { user_id, client_id, command_id }
          const status = await delivery.status(key, ASK)
          checkExact(DeliveryStatus, status, `status of ${command_id}`)
          checkEqual(status && { ...key, ...pick(status) }, key, 'status speaks of')
          for (const part of Object.keys(key)) {
            const other = await delivery.status({ ...key, [part]: NOBODY }, ASK)
            check(other === null, `status answers for another ${part}`)
          }
        }
        await checkSettles((ask) => delivery.status({ ...NO_COMMAND }, ask), 'status')
      }),
    },
    {
      name: 'status is null for an unknown command, and refuses what can be none with invalid_identity alone',
      run: of(async (delivery) => {
        check((await delivery.status(NO_COMMAND, ASK)) === null, 'an unknown command is not null')
        for (const impossible of ['.', '..', 'a/b']) {
          const answer = await orRefusal(() => delivery.status({ ...NO_COMMAND, command_id: impossible }, ASK))
          if ('code' in answer) checkEqual(answer.code, 'invalid_identity', `status refuses ${impossible} with`)
          else check(answer.value === null, `status answers for ${impossible}`)
        }
      }),
    },
  ]
}

const NO_COMMAND: CommandKey = { user_id: NOBODY, client_id: NOBODY, command_id: NOBODY }

const pick = ({ user_id, client_id, command_id }: DeliveryStatus) => ({ user_id, client_id, command_id })
