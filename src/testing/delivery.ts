/** The contract suite of a dispatcher's inspector: its evidence, and that no payload is part of it. */
import {
  type CommandFilter,
  type CommandKey,
  DeliveryCommand,
  type DeliveryInspector,
  DeliveryNode,
  DeliveryStatus,
  DeliverySummary,
  DeliveryTenant,
  NO_LEGACY,
} from '../contract/delivery.js'
import { addressOf, admitsCommand, toDeliveryCommand } from '../contract/delivery-rules.js'
import { checkSegmentId, commandKey } from '../contract/ids.js'
import { Refusal } from '../refusal.js'
import {
  CLIENT,
  CONTEXT,
  type ContractCase,
  check,
  checkEnds,
  checkEntries,
  checkEqual,
  checkExact,
  FAKE_TIME,
  fakePage,
  fill,
  find,
  type Make,
  notTested,
  orRefusal,
  type Partly,
  type Promised,
  toCases,
  wholeRecords,
} from './expect.js'
import { IDS_TRIED, listCases, type MakeInspector, NO_PAGE, UNKNOWN_ID, walk } from './lists.js'

// The suite of the list of a dispatcher's commands.

// Only the first of the three may have a slash.
function idOfCommand(command: DeliveryStatus): string {
  const { user_id, client_id, command_id } = addressOf(command)
  return `${user_id}/${client_id}/${command_id}`
}

/** The list of commands, held against what is told of each by itself. */
function commandCases(make: MakeInspector<DeliveryInspector>): Promised[] {
  return [
    ...listCases<DeliveryInspector, DeliveryCommand>(make, {
      name: 'listCommands',
      list: (delivery, filter) =>
        delivery.listCommands &&
        ((page, ctx) => delivery.listCommands?.(filter as CommandFilter, page, ctx) ?? NO_PAGE),
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
          walk((page, ctx) => listCommands.call(delivery, filter, page, ctx), 100, 'listCommands')
        const listed = await under({})
        for (const command of listed) {
          const { state, overdue, action, ...evidence } = command
          const told = toDeliveryCommand(evidence, overdue ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY, null)
          checkEqual([state, overdue], [told.state, told.overdue], `where ${command.command_id} stands`)
          const status = await delivery.status(addressOf(command), CONTEXT)
          // What is overdue reads as expired there.
          if (!overdue) checkEqual(status, evidence, `status of ${command.command_id}, which is listed`)
        }
        for (const scope_id of [
          UNKNOWN_ID,
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

/** Holds a delivery inspector to its contract. `commands`: retained commands, for whoever does not list them. */
export function deliveryContract(
  make: MakeInspector<DeliveryInspector>,
  { commands = [] }: { commands?: readonly CommandKey[] } = {},
): ContractCase[] {
  const of = (work: (delivery: DeliveryInspector) => Promise<void>) => async () => {
    const delivery = await make()
    if (!delivery) return notTested('there is no delivery')
    await work(delivery)
  }
  return toCases([
    {
      name: 'summary counts what is tracked, and carries no payload',
      run: of(async (delivery) => {
        const summary = await delivery.summary(CONTEXT)
        checkExact(DeliverySummary, summary, 'summary')
        const byState = summary.tracked_by_state
        const inStates = byState ? byState.waiting + byState.attempted + byState.acknowledged : null
        check(
          inStates === null || inStates === summary.tracked_commands,
          `summary has ${inStates} commands by state, of ${summary.tracked_commands} tracked`,
        )
        const due = (summary.due_commands ?? 0) + (summary.waiting_for_client ?? 0)
        check(
          due <= summary.tracked_commands,
          `summary has ${due} commands due or waiting for their client, of ${summary.tracked_commands} tracked`,
        )
        check(
          summary.sample_size <= summary.tracked_commands,
          `summary has sampled ${summary.sample_size} commands of ${summary.tracked_commands} tracked`,
        )
        await checkEnds((ctx) => delivery.summary(ctx), 'summary')
      }),
    },
    ...listCases<DeliveryInspector, DeliveryNode>(make, {
      name: 'listNodes',
      list: (delivery) => (page, ctx) => delivery.listNodes(page, ctx),
      item: DeliveryNode,
      exact: true,
      id: 'node_id',
    }),
    ...listCases<DeliveryInspector, DeliveryTenant>(make, {
      name: 'listTenants',
      list: (delivery) => (page, ctx) => delivery.listTenants(page, ctx),
      item: DeliveryTenant,
      exact: true,
      id: 'scope_id',
      get: async (delivery, id, ctx) => {
        if (delivery.getTenant) return delivery.getTenant(id, ctx)
        const listed = await walk((page) => delivery.listTenants(page, ctx), 100, 'listTenants')
        return listed.find(({ scope_id }) => scope_id === id) ?? null
      },
    }),
    ...commandCases(make),
    {
      name: 'status answers the evidence of the command asked for, and no payload',
      run: of(async (delivery) => {
        for (const { user_id, client_id, command_id } of commands) {
          const key = { user_id, client_id, command_id }
          const status = await delivery.status(key, CONTEXT)
          checkExact(DeliveryStatus, status, `status of ${command_id}`)
          checkEqual(status && addressOf(status), key, 'status speaks of')
          for (const part of Object.keys(key)) {
            const other = await delivery.status({ ...key, [part]: UNKNOWN_ID }, CONTEXT)
            check(other === null, `status must be null for another ${part}`)
          }
        }
        await checkEnds((ctx) => delivery.status({ ...NO_COMMAND }, ctx), 'status')
      }),
    },
    {
      name: 'status is null for an unknown command, and refuses what can be none with invalid_identity alone',
      run: of(async (delivery) => {
        check((await delivery.status(NO_COMMAND, CONTEXT)) === null, 'status of an unknown command must be null')
        for (const malformed of ['.', '..', 'a/b']) {
          const answer = await orRefusal(
            () => delivery.status({ ...NO_COMMAND, command_id: malformed }, CONTEXT),
            `status of ${malformed}`,
            'invalid_identity',
          )
          if ('code' in answer) checkEqual(answer.code, 'invalid_identity', `status refuses ${malformed} with`)
          else check(answer.value === null, `status must be null for the id ${malformed}`)
        }
      }),
    },
  ])
}

const NO_COMMAND: CommandKey = { user_id: UNKNOWN_ID, client_id: UNKNOWN_ID, command_id: UNKNOWN_ID }

/** What the fakes know of delivery. */
export interface DeliveryWorld {
  delivery?: {
    summary?: Partly<DeliverySummary>
    nodes?: Partly<DeliveryNode>[]
    tenants?: Partly<DeliveryTenant>[]
    /** Makes the inspector list its commands; those are overdue whose deadline is not after the time of the fakes. */
    statuses?: Partly<DeliveryStatus>[]
  }
}

const toDeliverySummary = (given: Partly<DeliverySummary> = {}): DeliverySummary =>
  fill(
    {
      deployment_id: null,
      mode: 'direct',
      tracked_commands: 0,
      tracked_by_state: null,
      due_commands: 0,
      waiting_for_client: 0,
      oldest_deadline_at: null,
      oldest_queued_age_ms: null,
      sample_size: 0,
      ...NO_LEGACY,
      observed_at: FAKE_TIME,
    },
    given,
  )

const toNode: Make<DeliveryNode> = (given, place) => {
  // Of a node that is silent nobody knows what runs there, and of one that never reports not even that.
  const { stale = false } = given
  const alive = stale === false ? true : null
  const now = stale === false ? 0 : null
  return fill(
    {
      node_id: `node-${place}`,
      mailbox_listener_alive: null,
      reconciliation_loop_alive: alive,
      active_drainers: now,
      connection_waiters: now,
      updated_at: stale === null ? null : FAKE_TIME,
      stale: false,
      staleness_ms: stale === null ? null : 0,
      counters: { recovery: {}, outcome: {}, acknowledgement: {}, other: {} },
    },
    given,
  )
}

const toTenant: Make<DeliveryTenant> = (given, place) =>
  fill({ scope_id: `scope-${place}`, reserved_commands: 0, oldest_deadline_at: null }, given)

const END: NonNullable<DeliveryStatus['terminal']> = { state: 'resulted', at: FAKE_TIME, reason: null }

const toStatus: Make<DeliveryStatus> = ({ terminal, ...given }, place) =>
  fill<DeliveryStatus>(
    {
      ...CLIENT,
      command_id: `command-${place}`,
      admission: {
        state: 'admitted',
        at: FAKE_TIME,
        scope_id: given.user_id ?? CLIENT.user_id,
        deadline_at: null,
      },
      attempts: { count: 0, confirmed: 0, last_at: null, last_node_id: null, last_outcome: null },
      acknowledgement: { state: 'none', at: null, instance_id: null },
      recovery: { count: 0, last_at: null, reason: null },
      terminal: terminal ? fill(END, terminal) : null,
    },
    given,
  )

const FAKE_NOW = Date.parse(FAKE_TIME)
const itself: Make<DeliveryCommand> = (command) => command as DeliveryCommand

export function fakeDelivery({ delivery }: DeliveryWorld): DeliveryInspector | undefined {
  if (!delivery) return undefined
  return {
    summary: () => toDeliverySummary(delivery.summary),
    listNodes: (page) => fakePage(toNode, delivery.nodes, {}, page),
    listTenants: (page) => fakePage(toTenant, delivery.tenants, {}, page),
    getTenant: (scope_id) => find(toTenant, delivery.tenants, { scope_id }),
    ...(delivery.statuses && {
      listCommands(filter, page) {
        const commands = wholeRecords(toStatus, delivery.statuses).map((status) =>
          toDeliveryCommand(status, FAKE_NOW, null),
        )
        return fakePage(
          itself,
          commands.filter((command) => admitsCommand(filter, command)),
          {},
          page,
        )
      },
    }),
    status(key) {
      if (checkSegmentId(key.client_id) || checkSegmentId(key.command_id)) throw new Refusal('invalid_identity')
      const asked = commandKey(key)
      const statuses = wholeRecords(toStatus, delivery.statuses)
      return statuses.find((status) => commandKey(addressOf(status)) === asked) ?? null
    },
  }
}
