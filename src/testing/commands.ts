/** The suite of the list of a dispatcher's commands. */
import {
  type CommandFilter,
  DeliveryCommand,
  type DeliveryInspector,
  type DeliveryStatus,
} from '../contract/delivery.js'
import { addressOf, admitsCommand, toDeliveryCommand } from '../contract/delivery-rules.js'
import { ASK, checkEntries, checkEqual, notTested, type Promised } from './expect.js'
import { IDS_TRIED, NOBODY } from './filters.js'
import { listCases, type MakeInspector, NO_PAGE, walk } from './lists.js'

// Only the first of the three may have a slash.
function idOfCommand(command: DeliveryStatus): string {
  const { user_id, client_id, command_id } = addressOf(command)
  return `${user_id}/${client_id}/${command_id}`
}

/** The list of commands, held against what is told of each by itself. */
export function commandCases(make: MakeInspector<DeliveryInspector>): Promised[] {
  return [
    ...listCases<DeliveryInspector, DeliveryCommand>(make, {
      name: 'listCommands',
      list: (delivery, filter) =>
        delivery.listCommands &&
        ((page, ask) => delivery.listCommands?.(filter as CommandFilter, page, ask) ?? NO_PAGE),
      item: DeliveryCommand,
      exact: true,
      id: idOfCommand,
      filters: ['state', 'user_id', 'client_id', 'command_id', 'overdue'],
    }),
    {
      name: 'listCommands shows what status answers, where it stands by that, and the commands of a scope',
      run: async () => {
        const delivery = await make()
        const listCommands = delivery?.listCommands
        if (!listCommands) return notTested('there is no listCommands')
        const under = (filter: CommandFilter) =>
          walk((page, ask) => listCommands.call(delivery, filter, page, ask), 100, 'listCommands')
        const listed = await under({})
        for (const command of listed) {
          const { state, overdue, action, ...evidence } = command
          const told = toDeliveryCommand(evidence, overdue ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY, null)
          checkEqual([state, overdue], [told.state, told.overdue], `where ${command.command_id} stands`)
          const status = await delivery.status(addressOf(command), ASK)
          // What is overdue reads as expired there.
          if (!overdue) checkEqual(status, evidence, `status of ${command.command_id}, which is listed`)
        }
        for (const scope_id of [
          NOBODY,
          ...new Set(listed.slice(0, IDS_TRIED).map(({ admission }) => admission.scope_id)),
        ])
          checkEntries(
            await under({ scope_id }),
            listed.filter((command) => admitsCommand({ scope_id }, command)),
            idOfCommand,
            `listCommands under the scope ${scope_id}`,
          )
      },
    },
  ]
}
