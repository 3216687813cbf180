/** Hosts that dispatch commands, call clients and claim message ids. */
import type { Dice } from '../random.js'
import type { Any } from '../record.js'
import type { Stage } from '../stage.js'
import { DIED } from '../world.js'
import { isUnsure, settleFromOutside } from './clients.js'

function later(stage: Stage, ms: number, run: () => Promise<unknown>): void {
  stage.world
    .sleep(ms)
    .then(run)
    .catch((error) => stage.violate('simulator', error.stack))
}

async function dispatchOne(stage: Stage, dice: Dice, command_id: string): Promise<void> {
  const { world, config } = stage
  const client = dice.pick(stage.clients)
  const { user_id, client_id } = client
  const input = {
    user_id,
    client_id,
    command_id,
    action: 'sync',
    payload: { of: command_id },
    scope_id: dice.chance(0.3) ? 'pool' : user_id,
    deadline_ms: dice.pick([400, 1_500, 3_000, 6_000]),
    ...(dice.chance(0.1) ? { require_waiter: true } : {}),
    ...(dice.chance(0.2) ? { max_attempts: 1 + dice.int(3) } : {}),
  }
  const repeats = dice.chance(0.1) ? 1 : 0
  for (let tries = 0; tries < 3; tries++) {
    const node = stage.anyNode(dice)
    if (!node) break
    const details = { ...input, max: input.max_attempts ?? config.maxAttempts }
    const operation = await stage.call(node, 'dispatch', details, ({ dispatcher }) => dispatcher.dispatch(input))
    if (!isUnsure(operation) && operation.state !== 'died' && tries >= repeats) break
    if (operation.state !== 'ok' && dice.chance(0.3)) break
    await world.sleep(dice.between(1, 300))
  }
  if (dice.chance(0.12))
    later(stage, dice.between(0, 3_000), async () => {
      const node = stage.anyNode(dice)
      const which = { user_id, client_id, command_id }
      if (node)
        await stage.call(node, 'cancel', which, ({ dispatcher }) =>
          dispatcher.cancel({ ...which, reason: 'changed_mind' }),
        )
    })
  if (dice.chance(0.1)) later(stage, dice.between(0, 3_000), () => settleFromOutside(stage, dice, client, command_id))
}

/** A dispatch that no client waits for, in a scope that is its own: it must leave no reservation behind. */
export async function dispatchInVain(stage: Stage, dice: Dice): Promise<void> {
  const node = stage.anyNode(dice)
  if (!node) return
  const command_id = stage.unique('vain-')
  const input = {
    user_id: dice.pick(stage.history.userIds),
    client_id: 'absent',
    command_id,
    action: 'sync',
    scope_id: command_id,
    deadline_ms: 60_000,
    require_waiter: true,
  }
  await stage.call(node, 'dispatch', { ...input, max: stage.config.maxAttempts }, ({ dispatcher }) =>
    dispatcher.dispatch(input),
  )
}

/** Two commands of one id at the same moment, with one reservation: the other one is refused, and the first stays. */
async function dispatchTwins(stage: Stage, dice: Dice, command_id: string): Promise<void> {
  const { user_id, client_id } = dice.pick(stage.clients)
  const own = { user_id, client_id, command_id, scope_id: 'pool', deadline_ms: dice.pick([1_500, 6_000]) }
  const twins = ['sync', 'copy'].map((action) => {
    const node = stage.anyNode(dice)
    const input = { ...own, action, payload: { of: command_id } }
    const details = { ...input, max: stage.config.maxAttempts }
    return node && stage.call(node, 'dispatch', details, ({ dispatcher }) => dispatcher.dispatch(input))
  })
  await Promise.all(twins)
}

async function callOne(stage: Stage, dice: Dice): Promise<void> {
  const { world } = stage
  const node = stage.anyNode(dice)
  if (!node) return
  const { user_id, client_id } = dice.pick(stage.clients)
  const gone = new AbortController()
  const timeoutMs = dice.pick([300, 1_500, 4_000])
  const opened = await stage.call(node, 'rpc.open', { user_id, client_id, timeoutMs }, ({ rpc }) =>
    rpc.open({ action: 'ask', user_id, client_id, timeout_ms: timeoutMs, signal: gone.signal }),
  )
  if (opened.state !== 'ok') return
  const { correlation_id, result } = opened.value
  opened.correlation_id = correlation_id
  const { life } = node
  Promise.race([result, life.died]).then(
    (value: unknown) => {
      Object.assign(opened, { resolvedAt: world.now, end: value === DIED ? 'died' : 'result', result: value })
    },
    (error: Any) => {
      const end = ['timeout', 'cancelled', 'closed'].includes(error?.code) ? error.code : 'error'
      Object.assign(opened, { resolvedAt: world.now, end, rejected: error })
    },
  )
  const settles = dice.pick([0, 1, 1, 1, 2])
  for (let s = 0; s < settles; s++) {
    const isForeign = dice.chance(0.1)
    const ok = dice.chance(0.7)
    const token = `${correlation_id}-${s}`
    later(stage, dice.between(0, timeoutMs * 1.3), async () => {
      const by = stage.anyNode(dice)
      if (!by) return
      const from = { user_id, client_id: isForeign ? 'stranger' : client_id }
      const reply = ok ? { ok, result: token, from } : { ok, error: { token }, from }
      await stage.call(by, 'rpc.settle', { correlation_id, isForeign, isResult: ok, token }, ({ rpc }) =>
        rpc.settle(correlation_id, reply as Any),
      )
    })
  }
  if (dice.chance(0.1))
    later(stage, dice.between(0, timeoutMs), async () => {
      if (life.isDead) return
      opened.abortedAt = world.now
      gone.abort()
    })
}

async function claimOne(stage: Stage, dice: Dice): Promise<void> {
  const node = stage.anyNode(dice)
  if (!node) return
  const claim = {
    user_id: dice.pick(stage.history.userIds),
    message_id: `d${dice.int(6)}-${Math.floor(stage.world.now / 15_000)}`,
  }
  if (dice.chance(0.12)) await stage.call(node, 'release', claim, ({ deduplicator }) => deduplicator.release(claim))
  else await stage.call(node, 'claim', claim, ({ deduplicator }) => deduplicator.claim(claim))
}

async function claimKey(stage: Stage, dice: Dice): Promise<void> {
  const { world } = stage
  const node = stage.anyNode(dice)
  if (!node) return
  const attempt = stage.unique('attempt-')
  const claim = {
    session_id: 's',
    user_id: dice.pick(stage.history.userIds),
    key: `x${dice.int(4)}-${Math.floor(world.now / 8_000)}`,
    fingerprint: dice.chance(0.9) ? 'f' : 'g',
    attempt,
    lease_ms: 3_000,
  }
  const operation = await stage.call(node, 'key.claim', claim, (_, { idempotency }) => idempotency.claim(claim))
  if (operation.state !== 'ok' || operation.value.state !== 'claimed') return
  await world.sleep(dice.between(0, 3_500))
  if (node.life.isDead || dice.chance(0.2)) return
  if (dice.chance(0.25)) {
    await stage.call(node, 'key.release', claim, (_, { idempotency }) => idempotency.release(claim))
    return
  }
  const at = new Date(0).toISOString()
  const answer: Any = {
    invocation_id: attempt,
    action: 'work',
    status: 'succeeded',
    result: attempt,
    error: null,
    started_at: at,
    finished_at: at,
  }
  await stage.call(node, 'key.keep', claim, (_, { idempotency }) => idempotency.keep(claim, answer))
}

export function actAsHosts(stage: Stage, endsAt: number): void {
  const { world } = stage
  const repeat = (name: string, from: number, to: number, once: (dice: Dice) => Promise<void>) =>
    stage.act(name, async (dice) => {
      while (world.now < endsAt) {
        await world.sleep(dice.between(from, to))
        await once(dice)
      }
    })
  for (const k of [0, 1]) repeat(`dispatch ${k}`, 20, 1_200, (dice) => dispatchOne(stage, dice, stage.unique(`k${k}-`)))
  repeat('in vain', 200, 3_000, (dice) => dispatchInVain(stage, dice))
  repeat('twins', 400, 5_000, (dice) => dispatchTwins(stage, dice, stage.unique('twin-')))
  repeat('calls', 50, 1_500, (dice) => callOne(stage, dice))
  repeat('deduplicator', 100, 1_500, (dice) => claimOne(stage, dice))
  repeat('idempotency', 200, 2_000, (dice) => claimKey(stage, dice))
  repeat('presence', 50, 900, async (dice) => {
    const node = stage.anyNode(dice)
    if (!node) return
    const { user_id, client_id } = dice.pick(stage.clients)
    const context_id = `x-${user_id}-${client_id}-${dice.int(3)}`
    const window_id = `w-${user_id}-${client_id}`
    const who = { user_id, client_id }
    switch (
      dice.pick(['report', 'report', 'report', 'close', 'assign', 'release', 'window', 'window', 'close window'])
    ) {
      case 'report': {
        const report = {
          context_id,
          ...who,
          client_type: 'browser',
          status: dice.pick(['active', 'idle'] as const),
          window_id,
        }
        await stage.call(node, 'context.report', { context_id, ...who }, ({ contexts }) =>
          contexts.report({ ...report, ownership: 'worker' } as Any),
        )
        return
      }
      case 'close':
        await stage.call(node, 'context.close', { context_id }, ({ contexts }) => contexts.close(context_id))
        return
      case 'assign': {
        const task = stage.unique('t')
        await stage.call(node, 'context.assign', { context_id }, ({ contexts }) =>
          contexts.assignTask(context_id, task),
        )
        return
      }
      case 'release':
        await stage.call(node, 'context.release', { context_id }, ({ contexts }) => contexts.releaseTask(context_id))
        return
      case 'window': {
        const report: Any = { window_id, ...who, ownership: 'user-owned' }
        await stage.call(node, 'window.report', { window_id, ...who }, (f) => f.browserWindows.report(report))
        return
      }
      default:
        await stage.call(node, 'window.close', { window_id }, ({ browserWindows }) => browserWindows.close(window_id))
    }
  })
}
