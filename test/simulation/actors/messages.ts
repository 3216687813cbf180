/** Applications that publish events, and all who listen: subscribers of the bus, and viewers over the relay's routes. */

import type { SimulatedNode } from '../node.js'
import type { Dice } from '../random.js'
import { type Any, type Heard, notesOf, type Operation, siteOf, topicOf, type Viewer } from '../record.js'
import type { Stage } from '../stage.js'
import { DIED } from '../world.js'

async function registerSite(stage: Stage, dice: Dice, owner: string, endsAt: number): Promise<void> {
  const site: Any = {
    site_id: siteOf(owner),
    owner,
    mode: 'cooperative',
    event_names: ['changed'],
    action_names: ['work'],
    capability_profile: { action_invocation: true },
  }
  while (stage.world.now < endsAt) {
    const node = stage.anyNode(dice)
    const put = node && (await stage.call(node, 'site.put', { owner }, ({ sites }) => sites.put(site)))
    if (put?.state === 'ok') return
    await stage.world.sleep(300)
  }
}

/** One message, sent again where its answer is lost and now and then where it is not. */
async function send(stage: Stage, dice: Dice, user_id: string): Promise<void> {
  const client = dice.pick(stage.clients.filter((one) => one.user_id === user_id))
  if (!client.instance_id) return
  const { client_id, former } = client
  const message_id = stage.unique('m-')
  const instance_id = former && dice.chance(0.08) ? former : client.instance_id
  const isEvent = dice.chance(0.7)
  const repeats = dice.chance(0.2) ? 1 : 0
  const message = {
    message_id,
    kind: 'event',
    client_id,
    instance_id,
    payload: { name: 'changed', data: { of: message_id } },
  }
  const details = { user_id, client_id, instance_id, message_id }
  for (let tries = 0; tries < 4; tries++) {
    const node = stage.anyNode(dice)
    if (!node) return
    const operation = isEvent
      ? await stage.call(node, 'event', { ...details, topic: topicOf(user_id) }, ({ ingest, sites, bus }, _, library) =>
          library.ingestCooperativeSiteMessage({ ingest, sites, bus, onError: null } as Any, {
            host: { user_id },
            message: { ...message, stream: `sites/${siteOf(user_id)}/events` } as Any,
          }),
        )
      : await stage.call(node, 'ingest', { ...details, stream: notesOf(user_id) }, ({ ingest }) =>
          ingest({ ...message, user_id, stream: notesOf(user_id) } as Any),
        )
    if (operation.state === 'ok' && tries >= repeats) return
    if (operation.code === 'stale_instance') return
    if (operation.state !== 'ok' && dice.chance(0.15)) return
    await stage.world.sleep(dice.between(1, 600))
  }
}

async function listen(stage: Stage, dice: Dice, endsAt: number): Promise<void> {
  const { world, history } = stage
  const node = stage.anyNode(dice)
  if (!node) return
  const topic = topicOf(dice.pick(history.userIds))
  const { life } = node
  const prepared = stage.isMemory
    ? { state: 'ok' }
    : await stage.call(node, 'bus.prepare', { topic }, ({ bus }) => (bus as Any).prepare(topic))
  if (life.isDead) return
  let subscription: Any
  try {
    subscription = stage.runningOn(node).facilities.bus.subscribe(topic)
  } catch {
    return
  }
  const isSlow = dice.chance(0.25)
  const leavesAt = world.now + dice.between(2_000, 20_000)
  const heard: Heard = {
    number: history.heard.length,
    topic,
    node: node.name,
    subscription,
    begin: { ...subscription.position },
    isPrepared: prepared.state === 'ok',
    items: [],
    isOpenAtEnd: false,
    hasDied: false,
  }
  history.heard.push(heard)
  const epoch = () => subscription.position.epoch
  const read = async () => {
    while (!life.isDead) {
      if (isSlow) await world.sleep(dice.between(100, 3_000))
      if (world.now >= Math.min(leavesAt, endsAt) && !stage.isOver) {
        subscription.close()
        break
      }
      const item = subscription.take()
      if (item === undefined) await Promise.race([world.sleep(100), life.died])
      else if (item.type === 'run')
        for (const { seq, event_id } of item.events)
          heard.items.push({ seq, id: event_id, at: world.now, epoch: epoch() })
      else heard.items.push({ gap: item, at: world.now, epoch: epoch() })
      if (subscription.closed && subscription.pending === 0) break
    }
    heard.hasDied = life.isDead
    heard.final = { ...subscription.position, pending: subscription.pending }
  }
  read().catch((error) => stage.violate('simulator', error.stack))
}

const FIELD = /^(\w+): ?(.*)$/

function parseFrame(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split('\n').flatMap((line) => {
      const found = FIELD.exec(line)
      return found ? [[found[1], found[2]]] : []
    }),
  )
}

async function view(stage: Stage, dice: Dice, place: { id: string | null; topic: string | null }): Promise<void> {
  const { world, history } = stage
  const node = stage.anyNode(dice)
  const session = stage.sessions.size > 0 ? dice.pick([...stage.sessions.values()]) : null
  if (!node || !session || node.pausedUntil > world.now) return
  const { life } = node
  const gone = new AbortController()
  const topic = topicOf(session.owner)
  const resume = place.id && place.topic === topic && dice.chance(0.7) ? place.id : null
  const headers = { 'x-user': session.owner, ...(resume ? { 'last-event-id': resume } : {}) }
  const request = new Request(`http://relay/sessions/${session.id}/events`, { headers, signal: gone.signal })
  const response = await Promise.race([stage.runningOn(node).relay(request), life.died])
  if (response === DIED) return
  if (response.status === 500) stage.violate('relay_500', `events: ${await response.text()}`)
  if (response.status !== 200) return response.body?.cancel().catch(() => {})
  const viewer: Viewer = {
    number: history.viewers.length,
    session_id: session.id,
    topic,
    node: node.name,
    resume,
    frames: [],
  }
  history.viewers.push(viewer)
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const isSlow = dice.chance(0.2)
  void world.sleep(dice.between(1_000, 12_000)).then(() => {
    if (life.isDead) return
    gone.abort()
    reader.cancel().catch(() => {})
  })
  let text = ''
  for (;;) {
    if (isSlow) await world.sleep(dice.between(200, 2_500))
    const chunk = await Promise.race([reader.read().catch(() => DIED), life.died])
    if (chunk === DIED || (chunk as Any).done) return
    text += Buffer.from((chunk as Any).value).toString()
    const frames = text.split('\n\n')
    text = frames.pop() as string
    for (const frame of frames.map(parseFrame)) {
      if (!frame.event) continue
      const data = frame.data ? JSON.parse(frame.data) : null
      viewer.frames.push({ event: frame.event, ...(frame.id ? { id: frame.id } : {}), data, at: world.now })
      world.say(() => `viewer ${viewer.number} reads ${frame.event} ${frame.id ?? ''} ${frame.data?.slice(0, 100)}`)
      if (frame.id) Object.assign(place, { id: frame.id, topic })
    }
  }
}

async function useSession(stage: Stage, dice: Dice): Promise<void> {
  const node = stage.anyNode(dice)
  if (!node) return
  const owner = dice.pick(stage.history.userIds)
  const own = [...stage.sessions.values()].filter((session) => session.owner === owner)
  if (own.length === 0 || dice.chance(0.1)) {
    const ttl = dice.chance(0.2) ? { ttl_ms: dice.pick([2_000, 8_000]) } : {}
    const connector = { user_id: owner, client_id: 'c0' }
    const opened = await stage.call(node, 'session.open', { owner, ...ttl }, ({ sessions }) =>
      sessions.open({ site_id: siteOf(owner), owner, connector, ...ttl }),
    )
    if (opened.state !== 'ok') return
    const { session_id } = opened.value
    opened.session_id = session_id
    stage.sessions.set(session_id, { id: session_id, owner })
    await stage.call(node, 'session.activate', { session_id }, ({ sessions }) => sessions.activate(session_id))
    return
  }
  const session_id = dice.pick(own).id
  const verb = dice.pick(['activate', 'suspend', 'close', 'share', 'unshare', 'get', 'activate', 'get'] as const)
  if (verb === 'close' && !dice.chance(0.3)) return
  const operation = await stage.call(node, `session.${verb}`, { session_id }, ({ sessions }) => {
    if (verb === 'share') return sessions.share(session_id, { user_id: 'vera', rights: ['view', 'invoke'] })
    return verb === 'unshare' ? sessions.unshare(session_id, 'vera') : sessions[verb](session_id)
  })
  if (verb === 'close' && operation.state === 'ok') stage.sessions.delete(session_id)
}

/** One call of an action, which the viewer may leave before it is answered. */
function invokeOnce(
  stage: Stage,
  node: SimulatedNode,
  { id, owner }: { id: string; owner: string },
  {
    key,
    n,
    timeout_ms,
    leftAfterMs,
  }: { key: string | null; n: string; timeout_ms: number; leftAfterMs: number | false },
): Promise<Operation> {
  const viewer = new AbortController()
  if (leftAfterMs !== false) void stage.world.sleep(leftAfterMs).then(() => viewer.abort())
  const headers = { 'x-user': owner, 'content-type': 'application/json', ...(key && { 'idempotency-key': key }) }
  const body = JSON.stringify({ parameters: { n }, timeout_ms })
  const details = { session_id: id, owner, key, n, isLeft: leftAfterMs !== false }
  return stage.call(node, 'invoke', details, async (_, { relay }) => {
    const url = `http://relay/sessions/${id}/actions/work`
    const response = await relay(new Request(url, { method: 'POST', headers, body, signal: viewer.signal }))
    return { status: response.status, body: await response.json() }
  })
}

async function invoke(stage: Stage, dice: Dice): Promise<void> {
  const { world } = stage
  const session = stage.sessions.size > 0 ? dice.pick([...stage.sessions.values()]) : null
  if (!session) return
  const key = dice.chance(0.7) ? stage.unique('key-') : null
  const n = stage.unique('p-')
  const timeout_ms = dice.pick([800, 3_000])
  const times = key ? 1 + dice.int(3) : 1
  for (let i = 0; i < times; i++) {
    const node = stage.anyNode(dice)
    if (!node) return
    const isLeft = dice.chance(0.25)
    const sending = invokeOnce(stage, node, session, {
      key,
      n,
      timeout_ms,
      leftAfterMs: isLeft && dice.between(0, 400),
    })
    if (isLeft || dice.chance(0.6)) await sending
    await world.sleep(dice.between(0, 600))
  }
}

/** More calls at once than a viewer may have, and further ones as they end. */
async function invokeMany(stage: Stage, dice: Dice): Promise<void> {
  const session = stage.sessions.size > 0 ? dice.pick([...stage.sessions.values()]) : null
  const node = stage.anyNode(dice)
  if (!session || !node) return
  const { callsPerViewer } = stage.config
  for (let i = 0; i < 2 * callsPerViewer + 2; i++) {
    void invokeOnce(stage, node, session, { key: null, n: stage.unique('p-'), timeout_ms: 800, leftAfterMs: false })
    await stage.world.sleep(i < callsPerViewer ? 1 : dice.between(1, 80))
  }
}

export function actAroundSites(stage: Stage, endsAt: number): void {
  const { world } = stage
  const repeat = (name: string, from: number, to: number, once: (dice: Dice) => Promise<void>) =>
    stage.act(name, async (dice) => {
      while (world.now < endsAt) {
        await world.sleep(dice.between(from, to))
        await once(dice)
      }
    })
  for (const user_id of stage.history.userIds)
    stage.act(`messages of ${user_id}`, async (dice) => {
      await registerSite(stage, dice, user_id, endsAt)
      while (world.now < endsAt) {
        await world.sleep(dice.between(20, 900))
        const sending = send(stage, dice, user_id)
        if (dice.chance(0.15)) sending.catch((error) => stage.violate('simulator', error.stack))
        else await sending
      }
    })
  repeat('invoke many', 1_500, 8_000, (dice) => invokeMany(stage, dice))
  repeat('subscribers', 50, 2_500, (dice) => listen(stage, dice, endsAt))
  repeat('sessions', 50, 1_200, (dice) => useSession(stage, dice))
  for (const k of [0, 1]) {
    const place = { id: null, topic: null }
    repeat(`viewer ${k}`, 100, 1_500, (dice) => view(stage, dice, place))
    repeat(`invoke ${k}`, 100, 2_500, (dice) => invoke(stage, dice))
  }
}
