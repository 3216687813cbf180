/** The answers that README and docs/questions.md show, and what happens to a client without a heartbeat. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'

const textOf = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const pages = textOf('README.md') + textOf('docs/questions.md')

/** Each request with the part of its answer that is shown. */
const shown = [...pages.matchAll(/`GET (\/\S+)`\n\n```json\n([\s\S]*?)\n```/g)].map(
  ([, path, answer]) => [path as string, JSON.parse(answer as string) as object] as const,
)

const ADA_CLIENT = { user_id: 'ada', client_id: 'laptop' }
const GRACE_CLIENT = { user_id: 'grace', client_id: 'phone' }
const ADA = { ...ADA_CLIENT, instance_id: 'run-1' }
const GRACE = { ...GRACE_CLIENT, instance_id: 'run-4' }

/** Runs a minute of a relay in which one client accepts its commands and does nothing, and another one works. */
async function liveUntilAsked() {
  let now = Date.UTC(2026, 10, 21, 3)
  const facilities = createMemoryFacilities({ now: () => now, nodeId: 'relay-1' })
  const { connections, dispatcher } = facilities
  const pass = async (ms: number) => {
    await new Promise((resolve) => setImmediate(resolve))
    now += ms
    await dispatcher.reconcile()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { connection_id } = await connections.connect({ ...ADA, client_type: 'browser', actions: ['sync'] })
  await connections.connect({ ...GRACE, client_type: 'mobile', actions: ['sync'] })
  await dispatcher.attach(ADA, () => {})
  await dispatcher.attach(GRACE, () => {})
  await pass(20_000)
  await connections.heartbeat(connection_id)
  await pass(1_000)
  await dispatcher.dispatch({ ...ADA_CLIENT, command_id: 'sync-7', action: 'sync' })
  await dispatcher.dispatch({ ...GRACE_CLIENT, command_id: 'sync-8', action: 'sync' })
  await pass(100)
  await dispatcher.acknowledge({ ...GRACE, command_id: 'sync-8' })
  await dispatcher.settle({ ...GRACE, command_id: 'sync-8', state: 'resulted' })
  for (const ms of [4_900, 200, 5_000, 400, 2_000]) await pass(ms)
  return { facilities, now: () => now }
}

it('returns what README and docs/questions.md show', async () => {
  const { facilities, now } = await liveUntilAsked()
  const router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: noopAuth(), now })
  expect(shown).toHaveLength(4)
  for (const [path, part] of shown) {
    const answer = await (await router(new Request(`http://relay${path}`))).json()
    expect(answer, path).toMatchObject(part)
  }
  await facilities.close()
})

it('says rightly that a client is gone 90 s after its last heartbeat', async () => {
  let now = Date.UTC(2026, 10, 21, 3)
  const facilities = createMemoryFacilities({ now: () => now })
  const router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: noopAuth(), now: () => now })
  const connectionsOfAda = async () => {
    const { items } = await (await router(new Request('http://relay/users'))).json()
    return items[0].observed_connections
  }
  await facilities.connections.connect({ ...ADA, client_type: 'web' })
  now += 89_999
  expect(await connectionsOfAda()).toBe(1)
  now += 2
  expect(await connectionsOfAda()).toBe(0)
  await facilities.close()
})
