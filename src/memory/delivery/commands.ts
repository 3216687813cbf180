/** The commands of the dispatcher and all their transitions; used by the attempts, the loop and the inspector. */
import type { Clock } from '../../internal/async/timer.js'
import { CHURN_MINUTES, MINUTE_MS, minuteOf } from '../../internal/contract/connections.js'
import {
  type CounterKind,
  type CounterName,
  type DeliveryMinute,
  type TerminalState,
  TRACKED_STATES,
} from '../../internal/contract/delivery.js'
import { emptyHistograms, measure, noEnds, stepTimes } from '../../internal/contract/delivery-rules.js'
import { clientKey, toTimestamp } from '../../internal/contract/ids.js'
import { createTally } from '../../internal/fair-share/fair-share.js'
import { ExpiryQueue } from '../table/expiry-queue.js'
import { FieldIndex } from '../table/field-index.js'
import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { createVersion } from '../table/version.js'
import {
  afterOverdue,
  createMailbox,
  latestAttempt,
  type Mailbox,
  type Phase,
  type Scheduled,
  stepInstantsOf,
  type TrackedCommand,
  type Waiter,
} from './command.js'
import { createCommandLists } from './lists.js'
import { byDeadline, createReservations } from './reservations.js'

// Terminal records, retained for a limited time and in a limited number; the oldest are evicted first.

/** @param onGone Called with each record that is deleted. */
function createRetention(
  maxRecords: number,
  retentionMs: number,
  { steady }: Clock,
  onGone: (record: TrackedCommand) => void,
) {
  const records = new Map<string, TrackedCommand>()
  const queue = new ExpiryQueue<TrackedCommand>()

  function drop(record: TrackedCommand) {
    records.delete(record.key)
    onGone(record)
  }

  function forget(key: string) {
    const record = records.get(key)
    if (!record) return
    queue.remove(record)
    drop(record)
  }

  return {
    forget,

    /** Retains a command that has just ended, and replaces an older record of the same command. */
    keep(record: TrackedCommand): void {
      forget(record.key)
      records.set(record.key, record)
      queue.push(record, steady())
      if (queue.size > maxRecords && queue.oldest) forget(queue.oldest.key)
    },

    /** Returns the record under `key` until it expires, even if the loop has not run. */
    get(key: string): TrackedCommand | undefined {
      const record = records.get(key)
      return record && record.touchedAt + retentionMs > steady() ? record : undefined
    },

    /** Deletes expired records. Returns whether none remains. */
    sweep: (): boolean => queue.sweep(steady() - retentionMs, drop),

    get size() {
      return records.size
    },

    /** Returns at most `most` records, newest first. */
    newest(most: number): TrackedCommand[] {
      const found: TrackedCommand[] = []
      for (let next = queue.newest; next && found.length < most; next = next.older as TrackedCommand | null)
        found.push(next)
      return found
    },
  }
}

// Commands of one process that were admitted and ended in each of the last minutes, counted as it happens.

type Counts = Omit<DeliveryMinute, 'minute'>

/** Creates the counts, which start with the current minute. `openCounts` returns the unfinished commands by state. */
function createDeliveryMinutes(now: () => number, openCounts: () => NonNullable<DeliveryMinute['open']>) {
  const since = minuteOf(now())
  let minutes = new Map<number, Counts>()
  /** The minute of the latest change. */
  let last = since

  function countsOf(minute: number): Counts {
    const known = minutes.get(minute)
    if (known) return known
    const counts = { admitted: 0, ended: noEnds(), open: null }
    minutes.set(minute, counts)
    return counts
  }

  /** Called before each change: no count has changed since the latest one, so the minutes in between had these. */
  function roll(): number {
    const present = minuteOf(now())
    if (present === last) return present
    const first = present - CHURN_MINUTES + 1
    const open = openCounts()
    for (let minute = Math.max(last, first); minute < present; minute++) countsOf(minute).open = open
    minutes = new Map([...minutes].filter(([minute]) => minute >= first && minute <= present))
    last = present
    return present
  }

  return {
    roll,
    admitted: () => void countsOf(roll()).admitted++,
    ended: (state: TerminalState) => void countsOf(roll()).ended[state]++,

    /** Returns the minutes, with the open commands unless `isFiltered`. */
    read(isFiltered: boolean): DeliveryMinute[] {
      const present = roll()
      countsOf(present).open = openCounts()
      const first = Math.max(Math.min(since, present), present - CHURN_MINUTES + 1)
      return Array.from({ length: present - first + 1 }, (_, i) => {
        const minute = toTimestamp((first + i) * MINUTE_MS)
        const { admitted, ended, open } = countsOf(first + i)
        return { minute, admitted, ended: { ...ended }, open: isFiltered ? null : open }
      })
    },
  }
}

interface DeliveryStoreOptions {
  capacity: (scope_id: string) => number
  maxRetained: number
  retentionMs: number
  clock: Clock
}

const byWake = (a: Scheduled, b: Scheduled) => byNumber(a.wakeAt, b.wakeAt) || byNumber(a.sequence, b.sequence)
const itself = (command: TrackedCommand) => command

/** The commands by everything that they are found by, and their counts. */
function createTables({ capacity, maxRetained, retentionMs, clock }: DeliveryStoreOptions) {
  const lists = createCommandLists()
  const revision = createVersion()
  function onGone(command: TrackedCommand) {
    revision.raise()
    lists.remove(command)
  }
  const openCounts = () =>
    Object.fromEntries(TRACKED_STATES.map((state) => [state, lists.sizeOf(state)])) as NonNullable<
      DeliveryMinute['open']
    >
  const counters: Record<CounterKind, Record<string, number>> = {
    recovery: {},
    outcome: {},
    acknowledgement: {},
    other: {},
  }
  const tracked = new Map<string, TrackedCommand>()
  const deadlines = new OrderedIndex<Scheduled, TrackedCommand>(itself, byDeadline)
  const ended = createRetention(maxRetained, retentionMs, clock, onGone)
  // Separate from the others: many refused admissions must not evict the evidence of admitted commands.
  const rejected = createRetention(maxRetained, retentionMs, clock, onGone)
  let sequence = 0

  /** Returns the number of tracked commands past their deadline at `now`. */
  const overdue = (now: number) => deadlines.rank(afterOverdue(now))

  return {
    tracked,
    trackedOf: createTally(),
    reservations: createReservations(capacity),
    /** Commands without acknowledgement, in the order of admission. */
    queued: new OrderedIndex<number, TrackedCommand>((command) => command.sequence, byNumber),
    deadlines,
    /** Attempted commands, by when their acknowledgement times out. */
    attempted: new OrderedIndex<Scheduled, TrackedCommand>(itself, byWake),
    /** Commands in backoff, by when the next attempt may start. */
    backoff: new OrderedIndex<Scheduled, TrackedCommand>(itself, byWake),
    ended,
    rejected,
    lists,
    minutes: createDeliveryMinutes(clock.now, openCounts),
    mailboxes: new Map<string, Mailbox>(),
    /** Attached connections, in the order in which they attached, and those of each user. */
    attached: new OrderedIndex<number, Waiter>((waiter) => waiter.sequence, byNumber),
    attachedOf: new FieldIndex<Waiter>(),
    waitersOf: createTally(),
    counters,
    latency: emptyHistograms(),
    /**
     * `readyAttached`: ready commands whose client is attached; `delivering`: attempted ones with `deliver` in progress.
     */
    totals: { ready: 0, readyAttached: 0, delivering: 0, payloadBytes: 0, waiters: 0, drainers: 0 },
    revision,
    overdue,

    nextSequence: () => ++sequence,

    /**
     * Returns a new text after every change of a command or scope: every transition is counted. The number of overdue
     * commands is part of it, because a deadline passes without a write. Returns `null` if more records are due than
     * one call should process.
     */
    version(): string | null {
      const isSwept = ended.sweep() && rejected.sweep()
      return isSwept ? `${revision.text()}.${overdue(clock.now())}` : null
    },

    /** Returns the record under `key`, tracked or retained, until its retention ends. */
    find: (key: string) => tracked.get(key) ?? ended.get(key) ?? rejected.get(key),

    count<Kind extends CounterKind>(kind: Kind, name: CounterName<Kind>) {
      revision.raise()
      const named: Record<string, number> = counters[kind]
      named[name] = (named[name] ?? 0) + 1
    },
  }
}

/** The changes of mailboxes: their waiters, and which of their commands are ready or being delivered. */
function createMailboxMoves({ mailboxes, attached, attachedOf, waitersOf, totals, revision }: Tables) {
  function closeIfEmpty(mailbox: Mailbox) {
    if (mailbox.waiter === null && mailbox.tracked === 0) mailboxes.delete(mailbox.key)
  }

  function endHandover(mailbox: Mailbox, command: TrackedCommand) {
    if (mailbox.handovers.delete(command) && mailbox.handovers.size === 0) totals.drainers--
  }

  return {
    closeIfEmpty,
    endHandover,

    beginHandover(mailbox: Mailbox, command: TrackedCommand) {
      if (mailbox.handovers.size === 0) totals.drainers++
      mailbox.handovers.add(command)
    },

    countReady(mailbox: Mailbox, step: number) {
      totals.ready += step
      if (mailbox.waiter) totals.readyAttached += step
    },

    /** Returns the mailbox of a client, and creates it if there is none. */
    openMailbox(user_id: string, client_id: string): Mailbox {
      const key = clientKey({ user_id, client_id })
      const mailbox = mailboxes.get(key) ?? createMailbox(user_id, client_id)
      mailboxes.set(key, mailbox)
      return mailbox
    },

    setWaiter(mailbox: Mailbox, waiter: Mailbox['waiter']) {
      const step = Number(waiter !== null) - Number(mailbox.waiter !== null)
      totals.waiters += step
      totals.readyAttached += step * mailbox.ready.size
      waitersOf.add(mailbox.user_id, step)
      if (mailbox.waiter) {
        attached.delete(mailbox.waiter.sequence)
        attachedOf.remove(mailbox.user_id, mailbox.waiter)
      }
      if (waiter) {
        attached.insert(waiter)
        attachedOf.add(mailbox.user_id, waiter)
      }
      revision.raise()
      mailbox.waiter = waiter
      // Commands in progress at the previous waiter are left to their timers: the new one does not wait for them.
      for (const command of [...mailbox.handovers]) endHandover(mailbox, command)
      closeIfEmpty(mailbox)
    },
  }
}

type Tables = ReturnType<typeof createTables>

export type DeliveryStore = ReturnType<typeof createDeliveryStore>

export function createDeliveryStore(options: DeliveryStoreOptions) {
  const tables = createTables(options)
  const { tracked, trackedOf, queued, deadlines, attempted, backoff, ended, rejected, lists, minutes, totals } = tables
  const { reservations, latency, revision, count } = tables
  const { closeIfEmpty, endHandover, countReady, ...mailboxMoves } = createMailboxMoves(tables)

  /** Moves a command from one waiting list to the next. Its sort keys change only here, in between. */
  function move(command: TrackedCommand, phase: Phase, wakeAt = 0) {
    revision.raise()
    const mailbox = command.mailbox as Mailbox
    endHandover(mailbox, command)
    if (command.phase === 'ready' && mailbox.ready.delete(command.sequence)) countReady(mailbox, -1)
    if (command.phase === 'attempted') attempted.delete(command)
    if (command.phase === 'backoff') backoff.delete(command)
    minutes.roll()
    command.phase = phase
    command.wakeAt = wakeAt
    lists.move(command)
    const isDelivering = phase === 'attempted' && latestAttempt(command)?.outcome === null
    totals.delivering += Number(isDelivering) - Number(command.isDelivering)
    command.isDelivering = isDelivering
    if (phase === 'attempted') attempted.insert(command)
    if (phase === 'backoff') backoff.insert(command)
    if (phase !== 'ready') return
    mailbox.ready.insert(command)
    countReady(mailbox, 1)
  }

  return {
    ...tables,
    ...mailboxMoves,
    move,

    /** Adds a command that has a reservation. */
    admit(command: TrackedCommand, mailbox: Mailbox) {
      command.mailbox = mailbox
      mailbox.tracked++
      tracked.set(command.key, command)
      trackedOf.add(command.user_id, 1)
      rejected.forget(command.key)
      minutes.admitted()
      lists.add(command)
      queued.insert(command)
      deadlines.insert(command)
      totals.payloadBytes += command.payloadBytes
      count('other', 'admitted')
      mailbox.ready.insert(command)
      countReady(mailbox, 1)
    },

    /** Retains a refused admission. */
    reject(command: TrackedCommand, reason: string, at: number) {
      command.phase = 'ended'
      command.terminal = { state: 'rejected', at, reason }
      command.payload = null
      count('outcome', 'rejected')
      minutes.ended('rejected')
      lists.add(command)
      lists.ended(command)
      rejected.keep(command)
    },

    acknowledge(command: TrackedCommand, state: 'acknowledged' | 'refused', instance_id: string, at: number) {
      command.acknowledged = state
      command.acknowledgedAt = at
      command.acknowledgedBy = instance_id
      count('acknowledgement', state)
      queued.delete(command.sequence)
      move(command, 'acknowledged')
    },

    /** Ends a tracked command: removes it from every index and releases its reservation and payload. */
    end(command: TrackedCommand, state: TerminalState, reason: string | null, at: number) {
      const mailbox = command.mailbox as Mailbox
      command.terminal = { state, at, reason }
      move(command, 'ended')
      tracked.delete(command.key)
      trackedOf.add(command.user_id, -1)
      queued.delete(command.sequence)
      deadlines.delete(command)
      reservations.release(command.scope_id, command)
      totals.payloadBytes -= command.payloadBytes
      command.payload = null
      command.mailbox = null
      lists.ended(command)
      mailbox.tracked--
      closeIfEmpty(mailbox)
      count('outcome', state)
      minutes.ended(state)
      measure(latency, stepTimes(stepInstantsOf(command)))
      ended.keep(command)
    },
  }
}
