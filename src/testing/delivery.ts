/** Contract suite of the delivery inspector: its evidence is consistent and contains no payload. */

import {
  type CommandFilter,
  type CommandKey,
  DeliveryChurnAnswer,
  DeliveryCommandAnswer,
  type DeliveryInspector,
  DeliveryMailboxAnswer,
  DeliveryNodeAnswer,
  DeliveryStatusAnswer,
  type DeliveryStatusInput,
  DeliverySummaryAnswer,
  DeliveryTenantAnswer,
  type MailboxFilter,
  NO_REASON,
  TRACKED_STATES,
} from '../internal/contract/delivery.js'
import { addressOf, admitsCommand } from '../internal/contract/delivery-rules.js'
import { partsOf } from '../internal/contract/evidence.js'
import { clientKey } from '../internal/contract/ids.js'
import { answering, type Known } from './answering.js'
import {
  CONTEXT,
  type ContractCase,
  check,
  checkEnds,
  checkEntries,
  checkEqual,
  checkExact,
  checkKnown,
  checkMinutes,
  notTested,
  orRefusal,
  type Promised,
  toCases,
} from './expect.js'
import { IDS_TRIED, type List, listCases, type MakeInspector, NO_PAGE, UNKNOWN_ID, walk } from './lists.js'

type KnownDelivery = Known<DeliveryInspector, typeof DeliverySummaryAnswer>

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
function commandCases(make: MakeInspector<KnownDelivery>): Promised[] {
  return [
    ...listCases<KnownDelivery, DeliveryCommandAnswer>(make, {
      name: 'listCommands',
      list: (delivery, filter) =>
        delivery.listCommands &&
        ((page, ctx) => delivery.listCommands?.(filter as CommandFilter, page, ctx) ?? NO_PAGE),
      item: DeliveryCommandAnswer,
      exact: true,
      id: idOfCommand,
      ordered: true,
      filters: ['state', 'user_id', 'client_id', 'command_id', 'action', 'trace_id', 'overdue'],
      times: ['from', 'to'],
    }),
    {
      name: 'listCommands returns the same evidence as status, matching states, and filters by scope, reason and open',
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
          const { state, action, waits_for, ...evidence } = command
          const { command_id, terminal, overdue } = command
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
          checkEqual(status, evidence, `status of ${command_id}, which is listed`)
        }
        const scopes = new Set(listed.slice(0, IDS_TRIED).flatMap(({ admission }) => admission?.scope_id ?? []))
        const reasons = new Set(listed.flatMap(({ terminal }) => (terminal ? [terminal.reason ?? NO_REASON] : [])))
        for (const filter of [
          { state: 'open' } as const,
          ...[UNKNOWN_ID, ...scopes].map((scope_id) => ({ scope_id })),
          ...['no_such_reason', ...[...reasons].slice(0, IDS_TRIED)].map((reason) => ({ reason })),
        ])
          checkEntries(
            await under(filter),
            listed.filter((command) => admitsCommand(filter, command)),
            idOfCommand,
            `listCommands with ${JSON.stringify(filter)}`,
          )
        const [first] = listed
        const { admission = [], attempts = [], acknowledgement = [], overdue = [] } = first ?? {}
        checkKnown({ admission, attempts, acknowledgement, overdue })
      },
    },
  ]
}

/** Cases of the list of mailboxes, compared with what commands wait for. */
function mailboxCases(make: MakeInspector<KnownDelivery>): Promised[] {
  return [
    ...listCases<KnownDelivery, DeliveryMailboxAnswer>(make, {
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
        const listed = await walk<DeliveryMailboxAnswer>(
          (page) => listMailboxes.call(delivery, {}, page, CONTEXT),
          100,
          'listMailboxes',
        )
        const attached = new Set(listed.map((mailbox) => clientKey(mailbox)))
        const all = await walk<DeliveryCommandAnswer>(
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
  const make = answering(given, DeliverySummaryAnswer)
  const of = (work: (delivery: KnownDelivery) => Promise<void>) => async () => {
    const delivery = await make()
    if (!delivery) return notTested('the delivery inspector is not implemented')
    await work(delivery)
  }
  return toCases([
    {
      name: 'summary counts tracked commands and contains no payload',
      run: of(async (delivery) => {
        const summary = await delivery.summary(CONTEXT)
        checkExact(DeliverySummaryAnswer, summary, 'summary')
        checkSums(summary)
        const { tracked_commands, sample_size } = summary
        const due = (summary.due_commands ?? 0) + (summary.waiting_for_client ?? 0)
        const most = tracked_commands ?? Number.POSITIVE_INFINITY
        check(
          due <= most,
          `summary has ${due} commands due or waiting for their client, of ${tracked_commands} tracked`,
        )
        check((sample_size ?? 0) <= most, `summary has sampled ${sample_size} commands of ${tracked_commands} tracked`)
        await checkEnds((ctx) => delivery.summary(ctx), 'summary')
        const { due_commands, waiting_for_client, by_state, by_reason, waits_for, latency } = summary
        checkKnown({ tracked_commands, due_commands, waiting_for_client, by_state, by_reason, waits_for, latency })
      }),
    },
    ...listCases<KnownDelivery, DeliveryNodeAnswer>(make, {
      name: 'listNodes',
      list: (delivery) => (page, ctx) => delivery.listNodes(page, ctx),
      item: DeliveryNodeAnswer,
      exact: true,
      id: 'node_id',
    }),
    ...listCases<KnownDelivery, DeliveryTenantAnswer>(make, {
      name: 'listTenants',
      list: (delivery) => (page, ctx) => delivery.listTenants(page, ctx),
      item: DeliveryTenantAnswer,
      exact: true,
      id: 'scope_id',
      get: async (delivery, id, ctx) => {
        if (delivery.getTenant) return delivery.getTenant(id, ctx)
        const listed = await walk<DeliveryTenantAnswer>((page) => delivery.listTenants(page, ctx), 100, 'listTenants')
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
          // A record need not say whose command it is.
          const scope = status?.admission?.scope_id
          const named = {
            user_id: status?.user_id ?? scope ?? user_id,
            client_id: status?.client_id ?? scope ?? client_id,
          }
          checkEqual({ ...named, command_id: status?.command_id ?? null }, key, 'status returned')
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

/** Compares the numbers of the summary, the scopes and the mailboxes with the list of commands, as far as they are known. */
async function checkNumbers(delivery: KnownDelivery): Promise<void> {
  const { listCommands, listMailboxes } = delivery
  if (!listCommands) return notTested('listCommands is not implemented')
  const listed = <Row>(list: List<Row>, name: string) => walk<Row>(list, 100, name)
  const commands = await listed<DeliveryCommandAnswer>(
    (page, ctx) => listCommands.call(delivery, {}, page, ctx),
    'listCommands',
  )
  const open = commands.filter(({ state }) => TRACKED_STATES.some((tracked) => tracked === state))
  const summary = await delivery.summary(CONTEXT)
  const { tracked_commands, by_state, by_reason, waits_for } = summary
  if (tracked_commands !== null) checkCount('tracked_commands of summary', tracked_commands, open.length)
  checkCounts('by_state', by_state, countBy(commands.map(({ state }) => state)))
  const ends = commands.flatMap(({ terminal }) => (terminal ? [terminal.reason ?? NO_REASON] : []))
  const areEndsKnown = commands.length === open.length + ends.length
  if (areEndsKnown) checkCounts('by_reason', by_reason, countBy(ends))
  const waits = open.flatMap((command) => command.waits_for ?? [])
  if (waits.length === open.length) checkCounts('waits_for', waits_for, countBy(waits))

  const tenants = await listed<DeliveryTenantAnswer>((page, ctx) => delivery.listTenants(page, ctx), 'listTenants')
  const areScoped = open.every(({ admission }) => typeof admission?.scope_id === 'string')
  for (const { scope_id, reserved_commands } of areScoped ? tenants : []) {
    const held = open.filter(({ admission }) => admission?.scope_id === scope_id).length
    if (reserved_commands !== null) checkCount(`reserved_commands of the scope ${scope_id}`, reserved_commands, held)
  }
  const mailboxes = listMailboxes
    ? await listed<DeliveryMailboxAnswer>((page, ctx) => listMailboxes.call(delivery, {}, page, ctx), 'listMailboxes')
    : []
  for (const { user_id, client_id, waiting_commands } of waits.length === open.length ? mailboxes : []) {
    const own = open.filter((command) => command.user_id === user_id && command.client_id === client_id)
    const turns = own.filter(({ waits_for }) => waits_for === 'turn').length
    const most = turns + own.filter(({ overdue }) => overdue).length
    check(
      waiting_commands === null || (turns <= waiting_commands && waiting_commands <= most),
      `waiting_commands of ${user_id}/${client_id}: expected ${turns} as in listCommands, got ${waiting_commands}`,
    )
  }
  checkKnown({
    tracked_commands,
    by_state,
    by_reason: areEndsKnown ? by_reason : null,
    waits_for: waits.length === open.length ? waits_for : null,
    reserved_commands:
      ((areScoped || null) && tenants.every(({ reserved_commands }) => reserved_commands !== null)) || null,
    waiting_commands: mailboxes.every(({ waiting_commands }) => waiting_commands !== null) || null,
  })
}

const checkCount = (what: string, count: number, listed: number) =>
  checkEqual(count, listed, `${what}, compared with listCommands`)

/** Checks counts by name, unless they are not known. */
function checkCounts(field: string, counts: Readonly<Record<string, number>> | null, listed: Record<string, number>) {
  if (counts === null) return
  for (const name of new Set([...Object.keys(counts), ...Object.keys(listed)]))
    checkCount(`${field}.${name} of summary`, counts[name] ?? 0, listed[name] ?? 0)
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

async function checkChurn(make: MakeInspector<KnownDelivery>): Promise<void> {
  const delivery = await make()
  if (!delivery?.deliveryChurn) return notTested('deliveryChurn is not implemented')
  const churnOf = async (node_id?: string) => {
    const churn = await delivery.deliveryChurn?.({ ...(node_id !== undefined && { node_id }) }, CONTEXT)
    checkExact(DeliveryChurnAnswer, churn, 'deliveryChurn')
    return churn as DeliveryChurnAnswer
  }
  const churn = await churnOf()
  checkMinutes(churn, 'deliveryChurn')
  for (const { minute, admitted, ended, open } of (await churnOf(UNKNOWN_ID)).items) {
    checkEqual([admitted ?? 0, sumOf(ended ?? {})], [0, 0], `changes at ${minute} on an unknown node`)
    checkEqual(open, null, `open commands at ${minute} under a filter`)
  }
  await checkEnds((ctx) => delivery.deliveryChurn?.({}, ctx), 'deliveryChurn')
  checkKnown({ ...churn.items[0] })
}

const sumOf = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((sum, count) => sum + count, 0)

/** Checks the sums of a summary, as far as they are known. */
function checkSums({ tracked_commands, by_state, by_reason, waits_for, latency }: DeliverySummaryAnswer): void {
  const open = by_state && sumOf(Object.fromEntries(TRACKED_STATES.map((state) => [state, by_state[state]])))
  if (open !== null && waits_for) {
    const waiting = sumOf(waits_for)
    check(waiting === open, `summary has ${waiting} commands by waits_for, but ${open} that have not ended`)
  }
  if (open !== null && tracked_commands !== null)
    checkEqual(tracked_commands, open, 'tracked_commands of summary, compared with the open states of by_state')
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
