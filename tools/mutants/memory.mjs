/** The facilities of one process: connections, reported records, calls and the dispatcher. */
import { weaken } from './mutant.mjs'

const DELIVERY = ['test/memory/delivery.test.ts']

const VERSIONS = 'test/memory/versions.test.ts'

export const MEMORY = [
  ...weaken('src/memory/cooperative/session-changes.ts', VERSIONS, [
    ['sessions are others by a clock that is set back', 'if (time < seenAt) {', 'if (false) {'],
    ['sessions are others when an instant has passed', 'next && next.changesAt <= time;', 'next && false;'],
  ]),
  ...weaken('src/memory/cooperative/session-entries.ts', VERSIONS, [
    ['a share that runs out is a change', 'if (expires_at !== null) offer(Date.parse(expires_at))', ''],
  ]),
  ...weaken('src/memory/cooperative/sites.ts', VERSIONS, [
    ['an event of a site is a change', '`${version.text()}.${events}`', 'version.text()'],
  ]),
  ...weaken('src/memory/cooperative/subscriptions.ts', VERSIONS, [
    [
      'of many streams nobody says that none has changed',
      'if (open.size > STATES_MAX) return null',
      'if (open.size > STATES_MAX) return version.text()',
    ],
    ['a stream that falls behind is a change', "`${version.text()}.${states.join(';')}`", 'version.text()'],
  ]),
  ...weaken('src/memory/delivery/commands.ts', VERSIONS, [
    [
      'a deadline that passes is a change',
      'isSwept ? `${version.text()}.${overdue(clock.now())}` : null',
      'isSwept ? version.text() : null',
    ],
    [
      'a record that is kept no longer is a change',
      '    version.raise()\n    lists.remove(command)',
      '    lists.remove(command)',
    ],
  ]),
  ...weaken('src/memory/history/facility.ts', VERSIONS, [
    ['a message is a change', '    table.raise()\n    const { state } = stream', '    const { state } = stream'],
  ]),
  ...weaken('src/memory/connections/facility.ts', 'test/memory/connections.test.ts', [
    [
      'a newer instance takes over',
      `if (previous?.record.instance_id === instance_id)
        lifecycle.end(previous, { end: 'disconnected', reason: LifecycleReason.enum.reconnected }, time, at)
      else if (previous)
        lifecycle.end(`,
      `if (previous?.record.instance_id === instance_id)
        lifecycle.end(previous, { end: 'disconnected', reason: LifecycleReason.enum.reconnected }, time, at)
      else if (false && previous)
        lifecycle.end(`,
    ],
    [
      'a user has so many connections',
      '!previous && lifecycle.connectedOf(user_id) >= maxConnectionsPerUser',
      'false',
      ['test/memory/connections.test.ts', 'test/memory/shares.test.ts'],
    ],
    [
      'connections are bounded',
      '!previous && lifecycle.connectedCount() >= maxConnections',
      'false',
      ['test/memory/connections.test.ts', 'test/memory/shares.test.ts'],
    ],
    [
      'a connection that ended has no heartbeat',
      `if (entry?.record.status !== 'connected') return false
      const now`,
      `if (!entry) return false
      const now`,
    ],
    ['a clock that was set back takes no sign of life back', 'now > before ? now : before', 'now'],
  ]),
  ...weaken('src/memory/connections/lifecycle.ts', 'test/memory/connections.test.ts', [
    [
      'a silent connection is lost',
      `record.status === 'connected' && touchedAt + heartbeatTimeoutMs <= time`,
      'false && record && touchedAt > time',
    ],
    [
      'connections that ended are bounded',
      'if (disconnected.size <= maxDisconnected || !surplus) return',
      'if (disconnected.size >= 0 || !surplus) return',
    ],
  ]),
  ...weaken(
    'src/memory/table/presence.ts',
    ['test/memory/contexts.test.ts', 'test/memory/browser-windows.test.ts'],
    [
      [
        'an id belongs to who reported it first',
        'if (known.record.user_id !== owner.user_id || known.record.client_id !== owner.client_id)',
        'if (false)',
      ],
      ['an id belongs to one client of its user', ' || known.record.client_id !== owner.client_id)', ')'],
      [
        'a user has so many entries',
        `if (table.sizeOf('user_id', owner.user_id) >= maxEntriesPerUser)`,
        'if (false)',
        'test/memory/shares.test.ts',
      ],
      ['entries are bounded', 'if (table.size >= maxEntries) throw', 'if (false) throw', 'test/memory/shares.test.ts'],
    ],
  ),
  ...weaken('src/memory/contexts.ts', 'test/memory/contexts.test.ts', [
    [
      'a report does not change whose a context is',
      'ownership: known?.ownership ?? input.ownership',
      'ownership: input.ownership',
    ],
    ['a report does not take a task away', 'task_id: known?.task_id ?? null', 'task_id: null'],
    ['a closed context takes no task', `return entry?.record.status === 'closed' ? undefined : entry`, 'return entry'],
  ]),
  ...weaken('src/memory/browser-windows.ts', 'test/memory/browser-windows.test.ts', [
    [
      'a report does not change whose a window is',
      'ownership: known?.ownership ?? input.ownership',
      'ownership: input.ownership',
    ],
  ]),
  ...weaken('src/memory/rpc/facility.ts', 'test/memory/rpc.test.ts', [
    ['a call whose time is over keeps no place', '      calls.timeOutSome(clock.steady())\n', ''],
    [
      'a reply of another client is foreign',
      'if (user_id !== call.user_id || client_id !== call.client_id) return true',
      '',
    ],
    [
      'a reply of another instance is foreign',
      'return call.instance_id !== null && instance_id !== undefined && instance_id !== call.instance_id',
      'return false',
    ],
    [
      'a call has one reply',
      "if (!entry) {\n        count('late')\n        return false",
      "if (!entry) {\n        count('late')\n        return true",
    ],
    [
      'a user has so many calls pending',
      `if (table.sizeOf('user_id', user_id) >= maxPendingPerUser)`,
      'if (false)',
      ['test/memory/shares.test.ts', 'test/redis/actions-replies.test.ts'],
    ],
    ['pending calls are bounded', 'if (table.size >= maxPending) throw', 'if (false) throw'],
    ['an id of a pending call is taken', `if (table.get(correlation_id)) throw new Refusal('command_conflict')`, ''],
    ['a reply at the deadline is late', 'entry.state.endsAt <= clock.steady()', 'entry.state.endsAt < clock.steady()'],
  ]),
  ...weaken('src/contract/event-bus.ts', 'test/cooperative-site/event-bus.test.ts', [
    ['what ends a subscription is a signal', 'signal: Signal.optional(),', 'signal: z.any().optional(),'],
  ]),
  ...weaken('src/contract/rpc.ts', 'test/memory/rpc.test.ts', [
    ['what gives a call up is a signal', 'signal: Signal.optional(),', 'signal: z.any().optional(),'],
  ]),
  ...weaken('src/memory/delivery/calls.ts', DELIVERY, [
    [
      'an id of a command stands for one payload',
      `if (known.fingerprint !== fingerprint) throw new Refusal('command_conflict')`,
      '',
    ],
    [
      'a command that was refused can be tried again',
      `if (known && known.terminal?.state !== 'rejected') {`,
      'if (known) {',
    ],
    [
      'commands are bounded',
      'store.tracked.size >= options.maxTracked || ',
      '',
      ['test/memory/delivery.test.ts', 'test/memory/delivery-bounds.test.ts'],
    ],
    [
      'payloads of commands are bounded',
      ' || payloadBytes > options.maxPayloadBytes',
      '',
      ['test/memory/delivery.test.ts', 'test/memory/delivery-bounds.test.ts'],
    ],
    [
      'a user has so many commands',
      `if (store.trackedOf.of(command.user_id) >= options.maxTrackedPerUser) return 'capacity_exceeded'`,
      '',
      ['test/memory/delivery.test.ts', 'test/memory/delivery-bounds.test.ts'],
    ],
    [
      'a scope has so many commands',
      'return store.reservations.reserve(command.scope_id, command, command.admittedAt) ? undefined',
      'return store.reservations.reserve(command.scope_id, command, command.admittedAt) || true ? undefined',
    ],
    [
      'a stale instance does not acknowledge',
      `if (!(await isCurrent(input, input.instance_id, options))) return refuse('fenced')`,
      '',
      ['test/memory/delivery.test.ts', 'test/memory/delivery-fencing.test.ts'],
    ],
    [
      'a stale instance does not settle',
      'input.instance_id !== undefined && !(await isCurrent(input, input.instance_id, options))',
      'false',
      ['test/memory/delivery.test.ts', 'test/memory/delivery-fencing.test.ts'],
    ],
    [
      'an acknowledgement that travels with the end is recorded',
      'const by = input.acknowledge ? input.instance_id : undefined',
      'const by = undefined',
    ],
    [
      'an end leaves an earlier acknowledgement as it is',
      `if (by !== undefined && command.acknowledged === 'none')`,
      'if (by !== undefined)',
    ],
    [
      'a command that ended while its fence was asked is not ended again',
      `const command = tracked(input)
      if (!command) return false
      const at`,
      `const command = store.find(commandKey(input))
      if (!command) return false
      const at`,
      'test/memory/delivery-fencing.test.ts',
    ],
    [
      'a command that ended while its fence was asked is not acknowledged',
      `const command = tracked(input)
      if (!command) return refuse('late')
      const state`,
      `const command = store.find(commandKey(input))
      if (!command) return refuse('late')
      const state`,
      'test/memory/delivery-fencing.test.ts',
    ],
    ['a command acknowledged twice is acknowledged once', `if (command.acknowledged === 'none') {`, 'if (command) {'],
    ['a command past its deadline has ended', 'if (command && !command.terminal) attempts.expire(command)', ''],
    [
      'a command that needs a waiter needs a current one',
      'return waiter != null && (!connections || (await connections.currentInstance(client)) === waiter.instance_id)',
      'return waiter != null',
      ['test/memory/delivery.test.ts', 'test/memory/delivery-fencing.test.ts'],
    ],
  ]),
  ...weaken('src/memory/delivery/attach.ts', DELIVERY, [
    [
      'waiters are bounded',
      'store.totals.waiters >= maxWaiters || ',
      '',
      ['test/memory/delivery.test.ts', 'test/memory/delivery-bounds.test.ts'],
    ],
    [
      'a user has so many waiters',
      ' || store.waitersOf.of(instance.user_id) >= maxWaitersPerUser',
      '',
      ['test/memory/delivery.test.ts', 'test/memory/delivery-bounds.test.ts'],
    ],
    [
      'an attach that was begun earlier does not take over',
      'if (former && former.order > order) {',
      'if (false) {',
      'test/memory/delivery-fencing.test.ts',
    ],
    [
      'a stale instance does not attach',
      'if (connections && (await connections.currentInstance(instance)) !== instance.instance_id)',
      'if (false)',
      ['test/memory/delivery.test.ts', 'test/memory/delivery-fencing.test.ts'],
    ],
    [
      'a detach of a waiter that was replaced changes nothing',
      'if (mailbox.waiter === waiter) store.setWaiter(mailbox, null)\n      },',
      'store.setWaiter(mailbox, null)\n      },',
      ['test/memory/delivery.test.ts', 'test/memory/delivery-deliverers.test.ts'],
    ],
  ]),
  ...weaken('src/memory/delivery/attempts.ts', DELIVERY, [
    [
      'attempts are bounded',
      `if (command.attempts >= command.maxAttempts) return end(command, 'failed', 'attempts_exhausted')`,
      '',
    ],
    [
      'an outcome of an earlier attempt is late',
      'command.terminal || command.attempts !== attempt || command.lastOutcome !== null',
      'command.terminal',
      'test/memory/delivery-deliverers.test.ts',
    ],
    [
      'an outcome after the end is late',
      'if (command.terminal || command.attempts',
      'if (command.attempts',
      [
        'test/memory/delivery.test.ts',
        'test/memory/delivery-loop.test.ts',
        'test/memory/delivery-deliverers.test.ts',
        'test/memory/delivery-evidence.test.ts',
      ],
    ],
    [
      'who is handed a command cannot change it',
      'deliver(deepFreeze(handed), { signal })',
      'deliver(handed, { signal })',
      [
        'test/memory/delivery.test.ts',
        'test/memory/delivery-direct.test.ts',
        'test/memory/delivery-deliverers.test.ts',
      ],
    ],
    [
      'a command that expires aborts its hand-over',
      `if (state === 'expired') controller?.abort(`,
      `if (false) controller?.abort(`,
      ['test/memory/delivery.test.ts', 'test/memory/delivery-deliverers.test.ts', 'test/memory/delivery-loop.test.ts'],
    ],
    [
      'a command that is cancelled aborts its hand-over',
      `if (state === 'cancelled') controller?.abort(`,
      `if (false) controller?.abort(`,
      ['test/memory/delivery.test.ts', 'test/memory/delivery-deliverers.test.ts', 'test/memory/delivery-loop.test.ts'],
    ],
    [
      'a pause comes between attempts',
      "wakeIn(backoffMs(command.attempts), command, 'backoff')",
      "wakeIn(0, command, 'backoff')",
      ['test/memory/delivery.test.ts', 'test/memory/delivery-loop.test.ts'],
    ],
  ]),
  ...weaken('src/contract/delivery-dispatch.ts', DELIVERY, [
    [
      'an acknowledgement that travels with the end is refused without an instance',
      '!acknowledge || instance_id !== undefined',
      'true',
    ],
  ]),
  ...weaken('src/contract/delivery-rules.ts', 'test/memory/delivery-fencing.test.ts', [
    [
      'a registry that never answers holds up no mailbox',
      'withTimeout(() => registry.currentInstance(client), limit)',
      'registry.currentInstance(client)',
    ],
    [
      'a capacity that is no number reserves nothing',
      "typeof said === 'number' && !Number.isNaN(said) ? Math.floor(said) : 0",
      'Math.floor(said as number)',
      DELIVERY,
    ],
    ['a capacity is so many whole commands', 'Math.floor(said)', 'said', DELIVERY],
  ]),
  ...weaken('src/memory/delivery/reservations.ts', DELIVERY, [
    [
      'a place is free at the deadline of who holds it',
      'commands.size - commands.rank(behindOverdue(now))',
      'commands.size',
    ],
  ]),
  ...weaken('src/memory/delivery/mailboxes.ts', DELIVERY, [
    [
      'a waiter that was fenced is released',
      `store.count('other', 'waiter_fenced')
    store.setWaiter(mailbox, null)
    return false`,
      `store.count('other', 'waiter_fenced')
    return true`,
      ['test/memory/delivery.test.ts', 'test/memory/delivery-fencing.test.ts'],
    ],
    [
      'a waiter whose fence cannot be asked gets nothing',
      `if (command) attempts.pause(command, FENCE_RETRY_MS)
      return null`,
      `return true`,
      ['test/memory/delivery.test.ts', 'test/memory/delivery-fencing.test.ts'],
    ],
    [
      'a registry that cannot answer is asked once for all that wait',
      'if (isOurs === null) break',
      '',
      'test/memory/delivery-fencing.test.ts',
    ],
    [
      'a command past its deadline is not handed over',
      'mailbox.waiter !== waiter || attempts.expire(command)) continue',
      'mailbox.waiter !== waiter) continue',
    ],
    [
      'one command is handed over at a time',
      'while (mailbox.waiter && !mailbox.handover && mailbox',
      'while (mailbox.waiter && mailbox',
    ],
  ]),
  ...weaken('src/memory/delivery/loop.ts', 'test/memory/delivery-loop.test.ts', [
    [
      'a pass ends',
      'const PASS_MAX = 1_000',
      'const PASS_MAX = 1_000_000',
      ['test/memory/delivery-loop.test.ts', 'test/memory/delivery-bounds.test.ts'],
    ],
  ]),
  ...weaken('src/async/timer.ts', 'test/async/timer.test.ts', [
    [
      'an alarm keeps no process alive',
      `if (typeof timer === 'object') timer.unref?.()`,
      '',
      ['test/async/timer.test.ts', 'test/memory/facilities.test.ts'],
    ],
    ['a tick waits for the one before', 'if (isUnderWay) return', ''],
    ['an alarm is only brought forward', 'if (at >= dueAt) return', ''],
  ]),
  ...weaken('src/memory/delivery/lists.ts', DELIVERY, [
    ['a command is listed where it stands', 'if (state === command.listedAs) return', 'return'],
    ['a record that is gone is in no list', 'all.delete(command.sequence)', '', 'test/memory/delivery-model.test.ts'],
  ]),
  ...weaken('src/memory/delivery/inspector.ts', DELIVERY, [
    ['a record that is over is not listed', 'if (store.find(command.key) !== command) continue', ''],
    [
      'those that are overdue stand in the order of the others, in memory',
      'commands.sort((a, b) => byNumber(a.sequence, b.sequence))',
      '',
    ],
    [
      'a scope whose places have all run out is not shown',
      'scope.commands.after(behindOverdue(now))',
      'scope.commands.after(null)',
    ],
    ['what is past its deadline is not tracked', 'store.tracked.size - store.overdue(now)', 'store.tracked.size'],
    ['the next deadline is one to come', 'store.deadlines.after(behindOverdue(now))', 'store.deadlines.after(null)'],
    ['what waits past its deadline is not due', `phase === 'ready' || (`, '('],
    ['what pauses past its deadline is not due', ` || (phase === 'backoff' && wakeAt <= steady)`, ''],
    [
      'no more is due than is tracked',
      'Math.min(tracked, dueAt(store, now, steady))',
      'dueAt(store, now, steady)',
      'test/memory/delivery-loop.test.ts',
    ],
    ['what is past its deadline has no age', 'if (command.deadlineAt <= now) {', 'if (false) {'],
    [
      'no more scopes are looked at than may be',
      `for (const scope of store.reservations.after(last)) {
        if (items.length === limit || examined === bound)`,
      `for (const scope of store.reservations.after(last)) {
        if (items.length === limit)`,
    ],
  ]),
  ...weaken('src/memory/delivery/commands.ts', DELIVERY, [
    ['a command that ended gives its place back', 'reservations.release(command.scope_id, command)', ''],
    [
      'a user’s place comes back with the end',
      'trackedOf.add(command.user_id, -1)',
      '',
      ['test/memory/delivery.test.ts', 'test/memory/delivery-bounds.test.ts'],
    ],
    [
      'payloads are forgotten at the end',
      'totals.payloadBytes -= command.payloadBytes',
      '',
      ['test/memory/delivery.test.ts', 'test/memory/delivery-bounds.test.ts'],
    ],
    [
      'an empty mailbox is forgotten',
      'if (mailbox.waiter === null && mailbox.tracked === 0) mailboxes.delete(mailbox.key)',
      '',
      'test/memory/delivery-bounds.test.ts',
    ],
    [
      'a newcomer does not wait for what its forerunner has in hand',
      'setHandover(mailbox, null)\n      closeIfEmpty(mailbox)',
      'closeIfEmpty(mailbox)',
      ['test/memory/delivery.test.ts', 'test/memory/delivery-deliverers.test.ts'],
    ],
    [
      'refused admissions push no evidence out',
      'rejected.keep(command)',
      'ended.keep(command)',
      ['test/memory/delivery.test.ts', 'test/memory/delivery-evidence.test.ts', 'test/memory/delivery-bounds.test.ts'],
    ],
  ]),
]
