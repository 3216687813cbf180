/** The records in `docs/evidence.md` and `docs/operating-delivery.md` are exactly the records of this run. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { createCommandDispatcher } from '../../src/memory/delivery/facility.js'
import { ASK } from '../contract/clock.js'

const textOf = (name: string) => readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8')
const pages = textOf('evidence') + textOf('operating-delivery')

/** One field a line, as the page prints a record. */
const printed = (record: object) =>
  `{\n${Object.entries(record)
    .map(([name, value]) => `  "${name}": ${JSON.stringify(value).replaceAll(',"', ', "').replaceAll('":', '": ')}`)
    .join(',\n')}\n}`

it('returns the records that the pages show', async () => {
  let now = Date.UTC(2026, 10, 21, 9)
  const dispatcher = createCommandDispatcher({ now: () => now, nodeId: 'relay-1', capacity: 3 })
  const { inspector } = dispatcher
  const laptop = { user_id: 'ada', client_id: 'laptop' }
  const instance = { ...laptop, instance_id: 'boot-7' }
  const dispatch = (command_id: string, deadline_ms?: number) =>
    dispatcher.dispatch({ ...laptop, command_id, action: 'sync', ...(deadline_ms ? { deadline_ms } : {}) })
  const tick = async (ms: number) => {
    await new Promise((resolve) => setImmediate(resolve))
    now += ms
    await dispatcher.reconcile()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const shown: string[] = []
  const show = async (command_id: string) => {
    const record = await inspector.status({ ...laptop, command_id }, ASK)
    if (!record) throw new Error(`${command_id} is not retained`)
    const { user_id, client_id, command_id: _, ...evidence } = record
    shown.push(printed(evidence))
  }

  await dispatch('sync-1', 600_000)
  await tick(12_000)
  await show('sync-1')
  await dispatcher.attach(instance, () => {})
  for (const ms of [340, 4_660, 200, 85]) await tick(ms)
  await dispatcher.acknowledge({ ...instance, command_id: 'sync-1' })
  await tick(2_410)
  await dispatcher.settle({ ...instance, command_id: 'sync-1', state: 'resulted' })
  await show('sync-1')

  await dispatcher.attach(instance, () => Promise.reject(new Error('gone')))
  await dispatch('sync-2')
  for (const ms of [200, 400, 800, 1_600]) await tick(ms)
  await show('sync-2')

  await dispatcher.attach(instance, () => {})
  await dispatch('sync-3')
  await tick(95)
  await dispatcher.acknowledge({ ...instance, command_id: 'sync-3' })
  await tick(30_000)
  await show('sync-3')

  for (const id of ['sync-4', 'sync-5', 'sync-6', 'sync-7']) await dispatch(id)
  await show('sync-7')
  await tick(150)
  shown.push(printed(await inspector.summary(ASK)))
  const nodes = await inspector.listNodes({ limit: 1, cursor: null }, ASK)
  const tenants = await inspector.listTenants({ limit: 1, cursor: null }, ASK)
  for (const record of [...nodes.items, ...tenants.items]) shown.push(printed(record))
  await dispatcher.close()

  const records = [...pages.matchAll(/```json\n([\s\S]*?)\n```/g)].map(([, text]) => text)
  expect(records).toEqual(shown)
})
