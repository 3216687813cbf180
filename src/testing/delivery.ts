/** Contract suite of the delivery inspector: its evidence is consistent and contains no payload. */

import {
  type CommandFilter,
  type CommandKey,
  CommandState,
  type DeliveryChurn,
  DeliveryChurnAnswer,
  type DeliveryCommand,
  DeliveryCommandAnswer,
  type DeliveryInspector,
  type DeliveryMailbox,
  DeliveryMailboxAnswer,
  type DeliveryMinute,
  type DeliveryNode,
  DeliveryNodeAnswer,
  type DeliveryStatus,
  DeliveryStatusAnswer,
  type DeliveryStatusInput,
  type DeliverySummary,
  DeliverySummaryAnswer,
  type DeliveryTenant,
  DeliveryTenantAnswer,
  type MailboxFilter,
  NO_LEGACY,
  NO_REASON,
  type TerminalState,
  TRACKED_STATES,
  WaitsFor,
} from '../contract/delivery.js'
import {
  addressOf,
  admitsCommand,
  latencyOf,
  noEnds,
  shownAttempts,
  stepTimesOf,
  toDeliveryCommand,
} from '../contract/delivery-rules.js'
import { partsOf } from '../contract/evidence.js'
import { checkSegmentId, clientKey, commandKey } from '../contract/ids.js'
import { Refusal } from '../refusal.js'
import { answering, type Known } from './answering.js'
import {
  CLIENT,
  CONTEXT,
  type ContractCase,
  check,
  checkEnds,
  checkEntries,
  checkEqual,
  checkExact,
  checkMinutes,
  FAKE_TIME,
  fakePage,
  fill,
  find,
  INSTANCE,
  type Make,
  notTested,
  orRefusal,
  type Partly,
  type Promised,
  toCases,
  wholeRecords,
} from './expect.js'
import { IDS_TRIED, listCases, type MakeInspector, NO_PAGE, UNKNOWN_ID, walk } from './lists.js'

// Suite of the list of commands.

// Only the first of the three may contain a slash.
function idOfCommand(command: DeliveryStatusInput): string {
  const { user_id, client_id, command_id } = addressOf(command)
  return `${user_id}/${client_id}/${command_id}`
}

/** Checks the attempts of a record against their totals. */
function checkAttempts(command: DeliveryStatusAnswer): void {
  const { command_id } = command
  const { attempts } = partsOf(command)
  const { items, omitted, count } = attempts
  if (omitted === null || count === null) return
  check(
    items.length + omitted === count,
    `${command_id} has ${items.length} attempts and ${omitted} omitted, of ${count}`,
  )
  for (const [i, { number }] of items.entries())
    check(number === omitted + i + 1, `attempt ${number} of ${command_id} is at the position of ${omitted + i + 1}`)
  const last = items.at(-1)
  if (!last) return
  checkEqual(
    [last.at, last.node_id, last.outcome],
    [attempts.last_at, attempts.last_node_id, attempts.last_outcome],
    `the latest attempt of ${command_id}`,
  )
}

/** Cases of the list of commands, compared with the status of each. */
function commandCases(make: MakeInspector<Known<DeliveryInspector>>): Promised[] {
  return [
    ...listCases<Known<DeliveryInspector>, DeliveryCommand>(make, {
      name: 'listCommands',
      list: (delivery, filter) =>
        delivery.listCommands &&
        ((page, ctx) => delivery.listCommands?.(filter as CommandFilter, page, ctx) ?? NO_PAGE),
      item: DeliveryCommandAnswer,
      exact: true,
      id: idOfCommand,
      ordered: true,
      filters: ['state', 'user_id', 'client_id', 'command_id', 'action', 'trace_id', 'overdue'],
    }),
    {
      name: 'listCommands returns the same evidence as status, matching states, and filters by scope and reason',
      run: async () => {
        const delivery = await make()
        const listCommands = delivery?.listCommands
        if (!listCommands) return notTested('listCommands is not implemented')
        const under = (filter: CommandFilter) =>
          walk<DeliveryCommandAnswer>(
            (page, ctx) => listCommands.call(delivery, filter, page, ctx),
            100,
            'listCommands',
          )
        const listed = await under({})
        for (const command of listed) {
          const { state, overdue, action, waits_for, ...evidence } = command
          const { command_id, terminal } = command
          check(waits_for === null || terminal === null, `waits_for of ${command_id} must be null when it has ended`)
          if (waits_for !== null && overdue !== null)
            check((waits_for === 'expiry') === overdue, `waits_for of ${command_id} is expiry when it is overdue`)
          checkAttempts(command)
          const { acknowledgement, attempts } = partsOf(command)
          if (terminal || (acknowledgement.state !== null && attempts.count !== null)) {
            const isTaken = acknowledgement.state !== 'none'
            const open = isTaken ? 'acknowledged' : (attempts.count ?? 0) > 0 ? 'attempted' : 'waiting'
            checkEqual(state, terminal?.state ?? open, `state of ${command_id}`)
          }
          const status = await delivery.status(addressOf(command), CONTEXT)
          // The status of an overdue command is `expired`.
          if (!overdue) checkEqual(status, evidence, `status of ${command.command_id}, which is listed`)
        }
        const scopes = new Set(listed.slice(0, IDS_TRIED).flatMap(({ admission }) => admission?.scope_id ?? []))
        const reasons = new Set(listed.flatMap(({ terminal }) => (terminal ? [terminal.reason ?? NO_REASON] : [])))
        for (const filter of [
          ...[UNKNOWN_ID, ...scopes].map((scope_id) => ({ scope_id })),
          ...['no_such_reason', ...[...reasons].slice(0, IDS_TRIED)].map((reason) => ({ reason })),
        ])
          checkEntries(
            await under(filter),
            listed.filter((command) => admitsCommand(filter, command)),
            idOfCommand,
            `listCommands with ${JSON.stringify(filter)}`,
          )
      },
    },
  ]
}

/** Cases of the list of mailboxes, compared with what commands wait for. */
function mailboxCases(make: MakeInspector<Known<DeliveryInspector>>): Promised[] {
  return [
    ...listCases<Known<DeliveryInspector>, DeliveryMailbox>(make, {
      name: 'listMailboxes',
      list: (delivery, filter) =>
        delivery.listMailboxes &&
        ((page, ctx) => delivery.listMailboxes?.(filter as MailboxFilter, page, ctx) ?? NO_PAGE),
      item: DeliveryMailboxAnswer,
      exact: true,
      id: ({ user_id, client_id }) => `${user_id}/${client_id}`,
      filters: ['user_id', 'client_id', 'node_id'],
    }),
    {
      name: 'listCommands reports client_not_attached only for clients without a mailbox in listMailboxes',
      run: async () => {
        const delivery = await make()
        const { listCommands, listMailboxes } = delivery ?? {}
        if (!listCommands || !listMailboxes) return notTested('listCommands or listMailboxes is not implemented')
        const listed = await walk<DeliveryMailbox>(
          (page) => listMailboxes.call(delivery, {}, page, CONTEXT),
          100,
          'listMailboxes',
        )
        const attached = new Set(listed.map((mailbox) => clientKey(mailbox)))
        const all = await walk<DeliveryCommand>(
          (page) => listCommands.call(delivery, {}, page, CONTEXT),
          100,
          'listCommands',
        )
        for (const command of all) {
          const { user_id, client_id, command_id, waits_for } = command
          const isAttached = user_id !== null && client_id !== null && attached.has(clientKey({ user_id, client_id }))
          if (waits_for === 'client_not_attached')
            check(!isAttached, `${command_id} waits for its client, which is attached`)
          if (waits_for === 'turn')
            check(isAttached, `${command_id} waits for its turn, but its client is not attached`)
        }
      },
    },
  ]
}

/**
 * Returns the contract suite of a delivery inspector. `commands`: retained commands, for inspectors that cannot list
 * them.
 */
export function deliveryContract(
  given: MakeInspector<DeliveryInspector>,
  { commands = [] }: { commands?: readonly CommandKey[] } = {},
): ContractCase[] {
  const make = answering(given)
  const of = (work: (delivery: Known<DeliveryInspector>) => Promise<void>) => async () => {
    const delivery = await make()
    if (!delivery) return notTested('the delivery inspector is not implemented')
    await work(delivery)
  }
  return toCases([
    {
      name: 'summary counts tracked commands and contains no payload',
      run: of(async (delivery) => {
        const summary: DeliverySummaryAnswer = await delivery.summary(CONTEXT)
        checkExact(DeliverySummaryAnswer, summary, 'summary')
        checkSums(summary)
        const { tracked_commands, sample_size } = summary
        if (tracked_commands === null) return notTested('tracked_commands is not known')
        const due = (summary.due_commands ?? 0) + (summary.waiting_for_client ?? 0)
        check(
          due <= tracked_commands,
          `summary has ${due} commands due or waiting for their client, of ${tracked_commands} tracked`,
        )
        check(
          (sample_size ?? 0) <= tracked_commands,
          `summary has sampled ${sample_size} commands of ${tracked_commands} tracked`,
        )
        await checkEnds((ctx) => delivery.summary(ctx), 'summary')
      }),
    },
    ...listCases<Known<DeliveryInspector>, DeliveryNode>(make, {
      name: 'listNodes',
      list: (delivery) => (page, ctx) => delivery.listNodes(page, ctx),
      item: DeliveryNodeAnswer,
      exact: true,
      id: 'node_id',
    }),
    ...listCases<Known<DeliveryInspector>, DeliveryTenant>(make, {
      name: 'listTenants',
      list: (delivery) => (page, ctx) => delivery.listTenants(page, ctx),
      item: DeliveryTenantAnswer,
      exact: true,
      id: 'scope_id',
      get: async (delivery, id, ctx) => {
        if (delivery.getTenant) return delivery.getTenant(id, ctx)
        const listed = await walk<DeliveryTenant>((page) => delivery.listTenants(page, ctx), 100, 'listTenants')
        return listed.find(({ scope_id }) => scope_id === id) ?? null
      },
    }),
    ...commandCases(make),
    {
      name: 'summary and scopes have the numbers of the commands that are listed',
      run: of(checkNumbers),
    },
    ...mailboxCases(make),
    {
      name: 'deliveryChurn returns each minute once, and nothing of an unknown node',
      run: () => checkChurn(make),
    },
    {
      name: 'status returns the evidence of the requested command, without its payload',
      run: of(async (delivery) => {
        for (const { user_id, client_id, command_id } of commands) {
          const key = { user_id, client_id, command_id }
          const status = await delivery.status(key, CONTEXT)
          checkExact(DeliveryStatusAnswer, status, `status of ${command_id}`)
          checkEqual(status && addressOf(status), key, 'status returned')
          for (const part of Object.keys(key)) {
            const other = await delivery.status({ ...key, [part]: UNKNOWN_ID }, CONTEXT)
            check(other === null, `status must be null for another ${part}`)
          }
        }
        await checkEnds((ctx) => delivery.status({ ...NO_COMMAND }, ctx), 'status')
      }),
    },
    {
      name: 'status returns null for an unknown command, and rejects a malformed id only with invalid_identity',
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

/** Compares the numbers of the summary and of each scope with the list of commands, as far as they are known. */
async function checkNumbers(delivery: Known<DeliveryInspector>): Promise<void> {
  const { listCommands } = delivery
  if (!listCommands) return notTested('listCommands is not implemented')
  const commands = await walk<DeliveryCommandAnswer>(
    (page, ctx) => listCommands.call(delivery, {}, page, ctx),
    100,
    'listCommands',
  )
  const isOpen = ({ state }: DeliveryCommandAnswer) => TRACKED_STATES.some((open) => open === state)
  const { tracked_commands, by_state }: DeliverySummaryAnswer = await delivery.summary(CONTEXT)
  const unknown: string[] = []
  if (tracked_commands === null || commands.some(({ overdue }) => overdue === null)) unknown.push('tracked_commands')
  else {
    const tracked = commands.filter((command) => isOpen(command) && !command.overdue).length
    checkEqual(tracked_commands, tracked, 'tracked_commands of summary, compared with listCommands')
  }
  if (by_state === null) unknown.push('by_state')
  for (const [state, count] of Object.entries(by_state ?? {})) {
    const listed = commands.filter((command) => command.state === state).length
    checkEqual(count, listed, `by_state.${state} of summary, compared with listCommands`)
  }
  const tenants = await walk<DeliveryTenantAnswer>((page, ctx) => delivery.listTenants(page, ctx), 100, 'listTenants')
  const areScoped = commands.every(({ admission }) => typeof admission?.scope_id === 'string')
  if (!areScoped || tenants.some(({ reserved_commands }) => reserved_commands === null))
    unknown.push('reserved_commands')
  else
    for (const { scope_id, reserved_commands } of tenants) {
      const listed = commands.filter((command) => isOpen(command) && command.admission?.scope_id === scope_id).length
      checkEqual(reserved_commands, listed, `reserved_commands of ${scope_id}, compared with listCommands`)
    }
  if (unknown.length > 0) return notTested(`${unknown.join(', ')}: not known`)
}

async function checkChurn(make: MakeInspector<Known<DeliveryInspector>>): Promise<void> {
  const delivery = await make()
  if (!delivery?.deliveryChurn) return notTested('deliveryChurn is not implemented')
  const churnOf = async (node_id?: string) => {
    const churn = await delivery.deliveryChurn?.({ ...(node_id !== undefined && { node_id }) }, CONTEXT)
    checkExact(DeliveryChurnAnswer, churn, 'deliveryChurn')
    return churn as DeliveryChurn
  }
  checkMinutes(await churnOf(), 'deliveryChurn')
  for (const { minute, admitted, ended, open } of (await churnOf(UNKNOWN_ID)).items) {
    checkEqual([admitted, sumOf(ended)], [0, 0], `changes at ${minute} on an unknown node`)
    checkEqual(open, null, `open commands at ${minute} under a filter`)
  }
  await checkEnds((ctx) => delivery.deliveryChurn?.({}, ctx), 'deliveryChurn')
}

const sumOf = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((sum, count) => sum + count, 0)

/** Checks the sums of a summary, as far as they are known. */
function checkSums({ tracked_commands, by_state, by_reason, waits_for, latency }: DeliverySummaryAnswer): void {
  const open = by_state && sumOf(Object.fromEntries(TRACKED_STATES.map((state) => [state, by_state[state]])))
  if (open !== null && waits_for) {
    const waiting = sumOf(waits_for)
    check(waiting === open, `summary has ${waiting} commands by waits_for, but ${open} that have not ended`)
    const within = open - waits_for.expiry
    check(
      tracked_commands === null || within === tracked_commands,
      `summary has ${within} commands by state within their deadline, of ${tracked_commands} tracked`,
    )
  }
  if (by_state && by_reason) {
    const ended = sumOf(by_state) - (open ?? 0)
    check(sumOf(by_reason) === ended, `summary has ${sumOf(by_reason)} ends by reason, of ${ended} that have ended`)
  }
  for (const [step, quantiles] of Object.entries(latency ?? {})) {
    if (quantiles === null) continue
    const { p50_ms, p95_ms, p99_ms, sample_size } = quantiles
    const isKnown = [p50_ms, p95_ms, p99_ms].every((ms) => (ms === null) === (sample_size === 0))
    check(isKnown, `summary must have quantiles of the step ${step} if, and only if, its sample is not empty`)
    check(
      (p50_ms ?? 0) <= (p95_ms ?? 0) && (p95_ms ?? 0) <= (p99_ms ?? 0),
      `the quantiles of ${step} must not decrease`,
    )
  }
}

const NO_COMMAND: CommandKey = { user_id: UNKNOWN_ID, client_id: UNKNOWN_ID, command_id: UNKNOWN_ID }

/** The evidence about one command, and the action that its list shows with it. */
export interface FakeCommand extends Partly<DeliveryStatus> {
  /** Name of the action, as lists show it. @default null */
  action?: string | null
}

/** Commands that were admitted and ended in one minute, optionally at one node. */
export interface FakeDeliveryMinute extends Partly<DeliveryMinute> {
  /** Id of the node. @default none */
  node_id?: string
}

/** Data of the fake delivery inspector. */
export interface DeliveryWorld {
  /** The command dispatcher. */
  delivery?: {
    /** Fields of the summary; counts that are not given are computed from `statuses`. */
    summary?: Partly<DeliverySummary>
    /** Nodes. */
    nodes?: Partly<DeliveryNode>[]
    /** Admission scopes with reservations. */
    tenants?: Partly<DeliveryTenant>[]
    /** Makes the inspector list attached mailboxes. */
    mailboxes?: Partly<DeliveryMailbox>[]
    /** Makes the inspector return what happened minute by minute. */
    churn?: FakeDeliveryMinute[]
    /** Makes the inspector list its commands. Those with a deadline up to `2026-01-01T00:00:00.000Z` are overdue. */
    statuses?: FakeCommand[]
  }
}

/** Returns the counts of a summary, computed from the listed commands. */
function countsIn(commands: readonly DeliveryCommand[]) {
  const count = (names: readonly string[]) => {
    const counts: Record<string, number> = {}
    for (const name of names) counts[name] = (counts[name] ?? 0) + 1
    return counts
  }
  const zeros = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, 0]))
  const states = count(commands.map(({ state }) => state))
  const waits = count(commands.flatMap(({ waits_for }) => waits_for ?? []))
  return {
    by_state: { ...zeros(CommandState.options), ...states } as NonNullable<DeliverySummary['by_state']>,
    by_reason: count(commands.flatMap(({ terminal }) => (terminal ? [terminal.reason ?? NO_REASON] : []))),
    waits_for: { ...zeros(WaitsFor.options), ...waits } as NonNullable<DeliverySummary['waits_for']>,
    tracked_commands: commands.filter(({ terminal, overdue }) => terminal === null && !overdue).length,
    latency: latencyOf(commands.filter(({ terminal }) => terminal).map(stepTimesOf)),
  }
}

const UNCOUNTED = { by_state: null, by_reason: null, waits_for: null, tracked_commands: 0, latency: null }

const toDeliverySummary = (
  given: Partly<DeliverySummary> = {},
  commands: readonly DeliveryCommand[] | undefined,
): DeliverySummary =>
  fill<DeliverySummary>(
    {
      deployment_id: null,
      mode: 'direct',
      // If some counts are given, computed ones would not match them.
      ...(commands && given.tracked_commands === undefined ? countsIn(commands) : UNCOUNTED),
      due_commands: 0,
      waiting_for_client: 0,
      oldest_deadline_at: null,
      oldest_queued_age_ms: null,
      sample_size: 0,
      oldest_open_age_ms: null,
      ...NO_LEGACY,
      observed_at: FAKE_TIME,
    },
    given,
  )

const toNode: Make<DeliveryNode> = (given, place) => {
  // The current state of a silent node is unknown, and for a node that never reports even its silence is.
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

const toMailbox: Make<DeliveryMailbox> = (given) =>
  fill({ ...INSTANCE, node_id: null, attached_at: FAKE_TIME, waiting_commands: 0 }, given)

const toTenant: Make<DeliveryTenant> = (given, place) =>
  fill({ scope_id: `scope-${place}`, reserved_commands: 0, oldest_deadline_at: null }, given)

const END: NonNullable<DeliveryStatus['terminal']> = { state: 'resulted', at: FAKE_TIME, reason: null }

/** Returns the attempts of a fake command: the latest one, from the given fields. */
function attemptsOf(given: Partly<DeliveryStatus['attempts']> = {}): DeliveryStatus['attempts'] {
  const { count = 0, last_at = null, last_node_id = null, last_outcome = null } = given
  const latest = { number: count, at: last_at, node_id: last_node_id, instance_id: null, outcome: last_outcome }
  const kept = count === 0 ? [] : [{ ...latest, ended_at: null, reason: null }]
  return {
    count,
    confirmed: 0,
    handed_over_at: null,
    last_at,
    last_node_id,
    last_outcome,
    ...shownAttempts(kept, count),
  }
}

const toStatus: Make<DeliveryStatus> = ({ terminal, action: _, ...given }: FakeCommand, place) =>
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
      attempts: attemptsOf(given.attempts),
      acknowledgement: { state: 'none', at: null, instance_id: null },
      recovery: { count: 0, last_at: null, reason: null },
      terminal: terminal ? fill(END, terminal) : null,
    },
    given,
  )

const FAKE_NOW = Date.parse(FAKE_TIME)
const itself: Make<DeliveryCommand> = (command) => command as DeliveryCommand

/** Returns the commands of a world: a command without attempts waits for its turn if its mailbox is attached. */
function commandsOf({ statuses, mailboxes }: NonNullable<DeliveryWorld['delivery']>): DeliveryCommand[] {
  return wholeRecords(toStatus, statuses).map((status, i) => {
    const { user_id, client_id, attempts } = status
    const isAttached =
      mailboxes && user_id !== null && client_id !== null
        ? find(toMailbox, mailboxes, { user_id, client_id }) !== null
        : null
    return toDeliveryCommand(status, FAKE_NOW, statuses?.[i]?.action ?? null, {
      step: attempts.count === 0 ? 'ready' : null,
      isAttached,
    })
  })
}

/** Returns the minutes of a world, or of one node. Equal minutes are merged. */
function fakeChurn(all: readonly FakeDeliveryMinute[], node_id: string | undefined): DeliveryChurn {
  const given = all.filter((part) => node_id === undefined || part.node_id === node_id)
  const minutes = [...new Set(given.map(({ minute = FAKE_TIME }) => minute))].sort()
  const items = minutes.map((minute): DeliveryMinute => {
    const item = { minute, admitted: 0, ended: noEnds(), open: null as DeliveryMinute['open'] }
    for (const part of given) {
      if ((part.minute ?? FAKE_TIME) !== minute) continue
      item.admitted += part.admitted ?? 0
      for (const [state, count] of Object.entries(part.ended ?? {})) item.ended[state as TerminalState] += count
      if (node_id === undefined && part.open) item.open = { waiting: 0, attempted: 0, acknowledged: 0, ...part.open }
    }
    return item
  })
  return { items, observed_at: minutes.at(-1) ?? FAKE_TIME }
}

export function fakeDelivery({ delivery }: DeliveryWorld): DeliveryInspector | undefined {
  if (!delivery) return undefined
  const listed = () => delivery.statuses && commandsOf(delivery)
  return {
    summary: () => toDeliverySummary(delivery.summary, listed()),
    listNodes: (page) => fakePage(toNode, delivery.nodes, {}, page),
    listTenants: (page) => fakePage(toTenant, delivery.tenants, {}, page),
    getTenant: (scope_id) => find(toTenant, delivery.tenants, { scope_id }),
    ...(delivery.statuses && {
      listCommands(filter, page) {
        return fakePage(
          itself,
          commandsOf(delivery).filter((command) => admitsCommand(filter, command)),
          {},
          page,
        )
      },
    }),
    ...(delivery.churn && {
      deliveryChurn: ({ node_id }) => fakeChurn(delivery.churn ?? [], node_id),
    }),
    ...(delivery.mailboxes && {
      listMailboxes: (filter, page) => fakePage(toMailbox, delivery.mailboxes, filter, page),
    }),
    status(key) {
      if (checkSegmentId(key.client_id) || checkSegmentId(key.command_id)) throw new Refusal('invalid_identity')
      const asked = commandKey(key)
      const statuses = wholeRecords(toStatus, delivery.statuses)
      return statuses.find((status) => commandKey(addressOf(status)) === asked) ?? null
    },
  }
}
