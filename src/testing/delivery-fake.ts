/** The fake delivery inspector: plain records of commands, nodes and scopes. */
import {
  type Attempt,
  CommandState,
  type DeliveryChurnInput,
  type DeliveryCommandInput,
  type DeliveryInspector,
  type DeliveryMailboxInput,
  type DeliveryMinuteInput,
  type DeliveryNodeInput,
  type DeliveryStatusInput,
  type DeliverySummaryInput,
  type DeliveryTenantInput,
  NO_LEGACY,
  NO_REASON,
  type TerminalState,
  WaitsFor,
} from '../internal/contract/delivery.js'
import {
  addressOf,
  admitsCommand,
  latencyOf,
  noEnds,
  shownAttempts,
  stepTimesOf,
  toDeliveryCommand,
} from '../internal/contract/delivery-rules.js'
import { checkSegmentId, commandKey } from '../internal/contract/ids.js'
import { Refusal } from '../internal/refusal.js'
import { CLIENT, FAKE_TIME, fakePage, fill, find, INSTANCE, type Make, type Partly, wholeRecords } from './expect.js'

/** The evidence about one command, and the action that its list shows with it. */
export interface FakeCommand extends Partly<DeliveryStatusInput> {
  /** Name of the action, as lists show it. @default null */
  action?: string | null
}

/** Commands that were admitted and ended in one minute, optionally at one node. */
export interface FakeDeliveryMinute extends Partly<DeliveryMinuteInput> {
  /** Id of the node. @default none */
  node_id?: string
}

/** Data of the fake delivery inspector. */
export interface DeliveryWorld {
  /** The command dispatcher. */
  delivery?: {
    /** Fields of the summary; counts that are not given are computed from `statuses`. */
    summary?: Partly<DeliverySummaryInput>
    /** Nodes. */
    nodes?: Partly<DeliveryNodeInput>[]
    /** Admission scopes with reservations. */
    tenants?: Partly<DeliveryTenantInput>[]
    /** Makes the inspector list attached mailboxes. */
    mailboxes?: Partly<DeliveryMailboxInput>[]
    /** Makes the inspector return what happened minute by minute. */
    churn?: FakeDeliveryMinute[]
    /** Makes the inspector list its commands. Those with a deadline up to `2026-01-01T00:00:00.000Z` are overdue. */
    statuses?: FakeCommand[]
  }
}

/** Returns the counts of a summary, computed from the listed commands. */
function countsIn(commands: readonly DeliveryCommandInput[]) {
  const count = (names: readonly string[]) => {
    const counts: Record<string, number> = {}
    for (const name of names) counts[name] = (counts[name] ?? 0) + 1
    return counts
  }
  const zeros = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, 0]))
  const states = count(commands.map(({ state }) => state))
  const waits = count(commands.flatMap(({ waits_for }) => waits_for ?? []))
  return {
    by_state: { ...zeros(CommandState.options), ...states } as NonNullable<DeliverySummaryInput['by_state']>,
    by_reason: count(
      commands.flatMap(({ terminal }) => (terminal ? [(terminal.reason as string | null) ?? NO_REASON] : [])),
    ),
    waits_for: { ...zeros(WaitsFor.options), ...waits } as NonNullable<DeliverySummaryInput['waits_for']>,
    tracked_commands: commands.filter(({ terminal }) => !terminal).length,
    latency: latencyOf(commands.filter(({ terminal }) => terminal).map(stepTimesOf)),
  }
}

const UNCOUNTED = { by_state: null, by_reason: null, waits_for: null, tracked_commands: 0, latency: null }

const toDeliverySummary = (
  given: Partly<DeliverySummaryInput> = {},
  commands: readonly DeliveryCommandInput[] | undefined,
): DeliverySummaryInput =>
  fill<DeliverySummaryInput>(
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

const toNode: Make<DeliveryNodeInput> = (given, place) => {
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

const toMailbox: Make<DeliveryMailboxInput> = (given) =>
  fill({ ...INSTANCE, node_id: null, attached_at: FAKE_TIME, waiting_commands: 0 }, given)

/** Creates a mailbox. Its waiting commands are those of `commands` unless given. */
const toMailboxOver =
  (commands: readonly DeliveryCommandInput[]): Make<DeliveryMailboxInput> =>
  (given, place, all) => {
    const mailbox = toMailbox(given, place, all)
    const { waiting_commands = commands.filter((one) => one.waits_for === 'turn' && isOf(mailbox, one)).length } = given
    return { ...mailbox, waiting_commands }
  }

const isOf = (mailbox: DeliveryMailboxInput, { user_id, client_id }: DeliveryCommandInput) =>
  user_id === mailbox.user_id && client_id === mailbox.client_id

/** Creates a scope. Its reservations are those of `commands` unless given. */
const toTenantOver =
  (commands: readonly DeliveryCommandInput[]): Make<DeliveryTenantInput> =>
  (given, place) => {
    const { scope_id = `scope-${place}` } = given
    const held = commands.filter(({ terminal, admission }) => !terminal && admission?.scope_id === scope_id)
    return fill({ scope_id, reserved_commands: held.length, oldest_deadline_at: null }, given)
  }

const END: NonNullable<DeliveryStatusInput['terminal']> = { state: 'resulted', at: FAKE_TIME, reason: null }

type Attempts = NonNullable<DeliveryStatusInput['attempts']>

/** Returns the attempts of a fake command: the latest one, from the given fields. */
function attemptsOf(given: Partly<Attempts> = {}): Attempts {
  const { count = 0, last_at = null, last_node_id = null, last_outcome = null } = given
  const latest = { number: count ?? 0, at: last_at, node_id: last_node_id, instance_id: null, outcome: last_outcome }
  const kept = count ? [{ ...latest, ended_at: null, reason: null } as Attempt] : []
  return {
    count,
    confirmed: 0,
    handed_over_at: null,
    last_at,
    last_node_id,
    last_outcome,
    ...(count === null ? {} : shownAttempts(kept, count)),
  }
}

const FAKE_NOW = Date.parse(FAKE_TIME)

const toStatus: Make<DeliveryStatusInput> = ({ terminal, action: _, ...given }: FakeCommand, place) => {
  const { deadline_at } = given.admission ?? {}
  return fill<DeliveryStatusInput>(
    {
      ...CLIENT,
      command_id: `command-${place}`,
      admission: {
        state: 'admitted',
        at: FAKE_TIME,
        scope_id: given.user_id ?? CLIENT.user_id,
        deadline_at: null,
      },
      attempts: attemptsOf(given.attempts ?? {}),
      acknowledgement: { state: 'none', at: null, instance_id: null },
      recovery: { count: 0, last_at: null, reason: null },
      terminal: terminal ? fill(END, terminal) : null,
      overdue: !terminal && typeof deadline_at === 'string' && Date.parse(deadline_at) <= FAKE_NOW,
    },
    given,
  )
}

const itself: Make<DeliveryCommandInput> = (command) => command as DeliveryCommandInput

/** Returns the commands of a world: a command without attempts waits for its turn if its mailbox is attached. */
function commandsOf({ statuses, mailboxes }: NonNullable<DeliveryWorld['delivery']>): DeliveryCommandInput[] {
  return wholeRecords(toStatus, statuses).map((status, i) => {
    const { user_id, client_id, attempts } = status
    const isAttached =
      mailboxes && user_id && client_id ? find(toMailbox, mailboxes, { user_id, client_id }) !== null : null
    return toDeliveryCommand(status, statuses?.[i]?.action ?? null, {
      step: attempts?.count === 0 ? 'ready' : null,
      isAttached,
    })
  })
}

/** Returns the minutes of a world, or of one node. Equal minutes are merged. */
function fakeChurn(all: readonly FakeDeliveryMinute[], node_id: string | undefined): DeliveryChurnInput {
  const given = all.filter((part) => node_id === undefined || part.node_id === node_id)
  const minutes = [...new Set(given.map(({ minute = FAKE_TIME }) => minute))].sort()
  const items = minutes.map((minute): DeliveryMinuteInput => {
    const item: DeliveryMinuteInput = { minute, admitted: 0, ended: noEnds(), open: null }
    for (const part of given) {
      if ((part.minute ?? FAKE_TIME) !== minute) continue
      const { admitted = 0, ended = {} } = part
      item.admitted = admitted === null ? null : (item.admitted ?? 0) + admitted
      if (ended === null || !item.ended) item.ended = null
      else for (const [state, count] of Object.entries(ended)) item.ended[state as TerminalState] += count ?? 0
      if (node_id === undefined && part.open) item.open = { waiting: 0, attempted: 0, acknowledged: 0, ...part.open }
    }
    return item
  })
  return { items, observed_at: minutes.at(-1) ?? FAKE_TIME }
}

export function fakeDelivery({ delivery }: DeliveryWorld): DeliveryInspector | undefined {
  if (!delivery) return undefined
  const listed = () => delivery.statuses && commandsOf(delivery)
  const tenants = () => toTenantOver(listed() ?? [])
  return {
    summary: () => toDeliverySummary(delivery.summary, listed()),
    listNodes: (page) => fakePage(toNode, delivery.nodes, {}, page),
    listTenants: (page) => fakePage(tenants(), delivery.tenants, {}, page),
    getTenant: (scope_id) => find(tenants(), delivery.tenants, { scope_id }),
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
      listMailboxes: (filter, page) => fakePage(toMailboxOver(listed() ?? []), delivery.mailboxes, filter, page),
    }),
    status(key) {
      if (checkSegmentId(key.client_id) || checkSegmentId(key.command_id)) throw new Refusal('invalid_identity')
      const asked = commandKey(key)
      const statuses = wholeRecords(toStatus, delivery.statuses)
      return statuses.find((status) => commandKey(addressOf(status)) === asked) ?? null
    },
  }
}
