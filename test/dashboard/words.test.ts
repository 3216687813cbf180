/** What the dashboard says of one command, of one that is not there, and what it leaves out on a narrow screen: nothing. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { KEY } from '../diagnostics/subject.js'
import { createWorld, node } from '../diagnostics/world.js'
import { inChromium } from './chromium.js'
import { startViewed, type ViewedHost } from './host.js'

const AT = '2026-01-02T03:04:05.000Z'
const commandAt = (id: string) => `/delivery/status?user_id=alice&client_id=desk&command_id=${id}`

/** One that nobody acknowledged, and one that its client refused. */
function failedWorld() {
  const world = createWorld()
  const attempts = { count: 5, confirmed: 5, last_at: AT, last_node_id: 'node-1', last_outcome: 'timed_out' } as const
  const acknowledgement = { state: 'none', at: null, instance_id: null } as const
  const [first] = world.delivery.statuses ?? []
  if (!first) throw new Error('the world has no command')
  const failed = (command_id: string, reason: string | null) =>
    ({ ...first, command_id, attempts, acknowledgement, terminal: { state: 'failed', reason, at: AT } }) as typeof first
  const refused = { state: 'refused', at: AT, instance_id: 'inst-1' } as const
  const statuses = [
    failed('cmd-tried', 'attempts_exhausted'),
    failed('cmd-said', null),
    { ...failed('cmd-refused', 'busy'), acknowledgement: refused },
    { ...failed('cmd-unconfirmed', null), attempts: { ...attempts, confirmed: 0 } },
  ]
  const nodes = [node({ node_id: 'node-own', metadata: { port: 49_153, pid: 8_793 } })]
  return { ...world, delivery: { ...world.delivery, statuses, nodes } }
}

inChromium('the words of the dashboard', (open) => {
  let host: ViewedHost
  beforeAll(async () => {
    host = await startViewed(failedWorld())
  })
  afterAll(() => host.close())

  it('tell the one reason that a command failed for', async () => {
    const page = await open(`${host.page}#/`, { key: KEY })
    const ended = page.locator('.steps li', { hasText: 'Ended' })
    const proofs = {
      'cmd-tried': 'that the attempts were exhausted.',
      'cmd-said': 'that someone entitled reported a failure.',
      'cmd-refused': 'that the client refused it.',
    }
    for (const [id, proof] of Object.entries(proofs)) {
      await page.goto(`${host.page}#${commandAt(id)}`)
      await page.locator('main', { hasText: id }).waitFor()
      await ended.getByText(`Proves ${proof}`).waitFor()
    }
  })

  it('tell what timed out, and claim no write that nobody confirmed', async () => {
    const page = await open(`${host.page}#${commandAt('cmd-tried')}`, { key: KEY })
    const attempted = page.locator('.steps li', { hasText: 'Attempted' })
    await attempted.getByText('5 of 5').filter({ hasText: 'handed over and not acknowledged' }).waitFor()
    await attempted.getByText('Proves that a connection took the write').waitFor()
    await page.goto(`${host.page}#${commandAt('cmd-unconfirmed')}`)
    await attempted.getByText('0 of 5').filter({ hasText: 'not acknowledged or not confirmed' }).waitFor()
    await attempted.getByText('Proves that a node claimed it').waitFor()
  })

  it('do not say of a refusal what is true of an acknowledgement', async () => {
    const page = await open(`${host.page}#${commandAt('cmd-refused')}`, { key: KEY })
    const refused = page.locator('.steps li', { hasText: 'Refused by the client' })
    await refused.getByText('Does not prove that the client ran none of it before it refused.').waitFor()
    expect(await refused.getByText('that it began').count()).toBe(0)
  })

  it('show numbers of the host as it gave them', async () => {
    const page = await open(`${host.page}#/delivery/nodes`, { key: KEY })
    const row = page.locator('tbody tr', { hasText: 'node-own' })
    await row.getByText('port 49153').waitFor()
    await row.getByText('pid 8793').waitFor()
  })

  it('say why a command may not be there, and nothing of what its fields prove', async () => {
    const page = await open(`${host.page}#${commandAt('none')}`, { key: KEY, refusals: true })
    await page.locator('main .absent', { hasText: /No such record.*an hour by default.*never admitted/ }).waitFor()
    expect(await page.getByText('no field proves').count()).toBe(0)
    expect(await page.locator('main .trouble').count()).toBe(0)
  })

  it('name a scope only where it is not the user’s', async () => {
    const page = await open(`${host.page}#/delivery/commands`, { key: KEY })
    const row = page.locator('tbody tr', { hasText: 'cmd-tried' })
    const scope = (await host.ask<{ admission: { scope_id: string } }>(commandAt('cmd-tried'))).admission.scope_id
    await row.getByRole('link', { name: scope }).waitFor()
  })

  it('are all of them on a narrow screen: every end of the flow, and a status before whose it is', async () => {
    const page = await open(host.page, { key: KEY, viewport: { width: 400, height: 800 } })
    const flow = page.locator('.flow')
    await flow.waitFor()
    for (const name of ['admitted', 'attempted', 'acknowledged', 'failed', 'rejected']) {
      const box = await flow.getByRole('link', { name }).boundingBox()
      expect([name, (box?.x ?? 400) + (box?.width ?? 0) <= 400]).toEqual([name, true])
    }
    await page.goto(`${host.page}#/connections`)
    const heads = page.locator('thead th')
    await heads.first().waitFor()
    expect((await heads.allTextContents()).slice(0, 2)).toEqual(['connection id', 'status'])
  })
})
