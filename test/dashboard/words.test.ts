/** What the dashboard says of one command, of one that is not there, and what it leaves out on a narrow screen: nothing. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { DeliveryWhy } from '../../src/internal/views/why-links.js'
import { KEY } from '../diagnostics/subject.js'
import { createWorld, NOW, node } from '../diagnostics/world.js'
import { inChromium } from './chromium.js'
import { startViewed, startViewedOnce, type ViewedHost } from './host.js'
import { triedWorld } from './tried.js'

const AT = '2026-01-02T03:04:05.000Z'
const commandAt = (id: string) => `/delivery/status?user_id=alice&client_id=desk&command_id=${id}`

/** One command that was never acknowledged, and one that its client refused. */
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
    { ...failed('cmd-tried', 'attempts_exhausted'), action: 'sync' },
    { ...failed('cmd-said', null), action: 'sync' },
    { ...failed('cmd-refused', 'busy'), acknowledgement: refused },
    { ...failed('cmd-unconfirmed', null), attempts: { ...attempts, confirmed: 0 } },
  ]
  // Older than the others, which stand first in a list.
  const admission = { ...first.admission, at: '2026-01-02T02:50:00.000Z' }
  for (let i = 0; i < 110; i++)
    statuses.push({ ...failed(`cmd-flood-${i}`, null), client_id: `flooded-${i}`, action: 'flood', admission })
  statuses.push({ ...failed('cmd-flood', null), client_id: 'flooded', action: 'flood', admission })
  const nodes = [node({ node_id: 'node-own', metadata: { port: 49_153, pid: 8_793 } })]
  return { ...world, delivery: { ...world.delivery, statuses, nodes } }
}

inChromium('the words of the dashboard', (open) => {
  let host: ViewedHost
  beforeAll(async () => {
    host = await startViewed(failedWorld())
  })
  afterAll(() => host.close())

  const facts = (page: Page, title: string) => page.locator('.facts', { hasText: title })

  it.each([1_280, 390])('do not overlap on the axis of a command with five attempts, at %i px', async (width) => {
    const tried = await startViewedOnce(triedWorld())
    const page = await open(`${tried.page}#${commandAt('cmd-tried')}`, { key: KEY, viewport: { width, height: 844 } })
    const score = page.locator('.event-chart')
    await score.locator('.dim', { hasText: 'heartbeat lost' }).waitFor()
    expect(await score.locator('.lane.try').allInnerTexts()).toEqual(
      ['node node-1', '', '', '', 'node node-2'].map((node, i) =>
        expect.stringMatching(`^${node}\\s*▪${i + 1} ack timeout$`),
      ),
    )
    expect(await score.locator('.dim', { hasText: 'connected' }).innerText()).toMatch(
      /┊\sheartbeat lost .* · ┃\sconnected .* · ┊\sheartbeat lost/,
    )
    const overlaps = await score.evaluate((all) => {
      const texts = [...all.querySelectorAll('.event:not(.bare), .tick, .name, .dim, .key')].filter(
        (text) => text.textContent && text.checkVisibility(),
      )
      const frame = all.getBoundingClientRect()
      const boxes = texts.map((text) => ({ text: text.textContent, box: text.getBoundingClientRect() }))
      const isOver = (a: DOMRect, b: DOMRect) =>
        a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1
      return boxes.flatMap(({ text, box }, i) => [
        ...(box.right > frame.right + 1 || box.left < frame.left - 1 ? [`${text} is cut`] : []),
        ...boxes.slice(i + 1).flatMap((other) => (isOver(box, other.box) ? [`${text} over ${other.text}`] : [])),
      ])
    })
    expect(overlaps).toEqual([])
  })

  it('include every character of an id once, where it is cut on the screen and selected', async () => {
    const world = createWorld()
    const id = '1101fc78-664d-4dd6-8bfb-2e0bb08d056c'
    const tenants = (world.delivery.tenants ?? []).slice(0, 1).map((tenant) => ({ ...tenant, scope_id: id }))
    const one = await startViewedOnce({ ...world, delivery: { ...world.delivery, tenants } })
    const page = await open(`${one.page}#/delivery/tenants`, { key: KEY, viewport: { width: 390, height: 844 } })
    const link = page.getByRole('link', { name: id })
    await link.waitFor()
    const selected = await link.evaluate((element) => {
      getSelection()?.selectAllChildren(element)
      return String(getSelection())
    })
    expect(selected).toBe(id)
  })

  it('tell the one reason that a command failed for, and tell it once', async () => {
    const page = await open(`${host.page}#/`, { key: KEY })
    const proofs = {
      'cmd-tried': 'The attempts were used up.',
      'cmd-said': 'An authorized caller reported a failure.',
      'cmd-refused': 'The client refused to run it.',
    }
    for (const [id, proof] of Object.entries(proofs)) {
      await page.goto(`${host.page}#${commandAt(id)}`)
      await page.locator('main', { hasText: id }).waitFor()
      await page.locator('.verdict strong', { hasText: 'failed' }).waitFor()
      await facts(page, 'Proven').getByText(proof).waitFor()
      expect(
        await page
          .locator('.facts')
          .first()
          .getByText(/refused|failure|attempts were/)
          .count(),
      ).toBe(1)
      await expect.poll(() => page.title()).toContain(`command ${id} failed`)
    }
  })

  it('say of a command that expired before any attempt that it was not delivered, and nothing of lost replies', async () => {
    const world = createWorld()
    const [first] = world.delivery.statuses ?? []
    if (!first) throw new Error('the world has no command')
    const never = {
      ...first,
      command_id: 'cmd-never',
      attempts: { count: 0, confirmed: 0, last_at: null, last_node_id: null, last_outcome: null },
      acknowledgement: { state: 'none' as const, at: null, instance_id: null },
      terminal: { state: 'expired' as const, reason: 'deadline_passed' as const, at: new Date(NOW).toISOString() },
    }
    world.delivery.statuses = [never as typeof first]
    const own = await startViewedOnce(world)
    const page = await open(`${own.page}#${commandAt('cmd-never')}`, { key: KEY })
    await page.locator('.verdict', { hasText: 'It was never delivered, so the client ran none of it.' }).waitFor()
    const columns = await page.locator('.facts').allInnerTexts()
    expect(columns.map((text) => text.replace(/\s+/g, ' ').replace(/\d{4}-\d\d-\d\d /g, ''))).toEqual([
      expect.stringMatching(/PROVEN ● It was admitted\. ● No attempt was made: no node claimed it\. ● The deadline/),
      'NOT PROVEN –',
      'UNKNOWN –',
    ])
  })

  it('lead from the reasons of the last disconnects to their connections', async () => {
    const page = await open(`${host.page}#/`, { key: KEY })
    const card = page.locator('.card', { hasText: 'Connects and disconnects' })
    await card.getByRole('link', { name: '1 client closed' }).click()
    await page.getByRole('heading', { name: 'Connections' }).waitFor()
    await page.locator('.chip.on', { hasText: 'ended reason client closed' }).waitFor()
  })

  it('show other commands of the same action', async () => {
    const page = await open(`${host.page}#${commandAt('cmd-tried')}`, { key: KEY })
    const same = page.locator('.card', { has: page.getByRole('heading', { name: 'Same action' }) })
    await expect
      .poll(async () => (await same.locator('li a').allTextContents()).sort())
      .toEqual(['cmd-said', 'cmd-tried'])
    await page.goto(`${host.page}#${commandAt('cmd-refused')}`)
    await page.locator('main', { hasText: 'cmd-refused' }).waitFor()
    await same.waitFor({ state: 'detached' })
  })

  it('count how those of the last hour stand, by the clock of the browser, and say of how many', async () => {
    const page = await open(`${host.page}#${commandAt('cmd-tried')}`, { key: KEY, clock: true })
    const tally = (title: string) => page.locator('.card', { hasText: title }).locator('p')
    await tally('Same action').getByText('last hour: none').waitFor()
    await page.clock.setSystemTime(Date.parse(AT) + 60_000)
    await page.reload()
    await tally('Same action').getByText('last hour: 2 failed', { exact: true }).waitFor()
    await page.goto(`${host.page}#${commandAt('cmd-flood').replace('desk', 'flooded')}`)
    await tally('Same action').getByText('newest 100 of the last hour: 100 failed', { exact: true }).waitFor()
    await tally('Same client').getByText('last hour: 1 failed', { exact: true }).waitFor()
    const listed = page.locator('.card', { hasText: 'Same action' }).locator('li')
    await expect.poll(() => listed.count()).toBe(9)
  })

  it('show how often a command may have run, and claim no unconfirmed write', async () => {
    const page = await open(`${host.page}#${commandAt('cmd-tried')}`, { key: KEY })
    await page.locator('.verdict', { hasText: 'It is unknown whether the client ran it: 0 to 5 times.' }).waitFor()
    await facts(page, 'Proven').getByText('It was sent in 5 of 5 attempts.').waitFor()
    await facts(page, 'Not proven').getByText('That it arrived').waitFor()
    await page.goto(`${host.page}#${commandAt('cmd-unconfirmed')}`)
    await facts(page, 'Proven').getByText('5 attempts, none known as sent').waitFor()
  })

  it('name the first link of a command that does not hold, with its evidence', async () => {
    const page = await open(`${host.page}#${commandAt('cmd-tried')}`, { key: KEY })
    const { verdict, links } = await host.ask<DeliveryWhy>(commandAt('cmd-tried').replace('status', 'why'))
    expect(verdict).toEqual({ link: 'acknowledged', holds: false })
    const { means } = links.find(({ link }) => link === verdict?.link) as DeliveryWhy['links'][number]
    await page.locator('.first-link', { hasText: `Not reached: acknowledged. ${means}` }).waitFor()
    const chain = page.locator('.chain')
    await chain.locator('li.first').getByText('acknowledgement.state = none').waitFor()
    expect(await chain.locator('summary').allTextContents()).toEqual(
      links.map(({ link, holds }) => {
        const [glyph, read] = holds === null ? ['?', 'unknown'] : holds ? ['✓', 'holds'] : ['✕', 'broken']
        return `${glyph} ${link.replaceAll('_', ' ')} ${read}`
      }),
    )
    const evidence = chain.locator('li', { hasText: /handed.over/ }).locator('summary')
    await evidence.click()
    await chain.getByText('attempts.confirmed = 5').waitFor()
  })

  it('do not say of a refusal what is true of an acknowledgement', async () => {
    const page = await open(`${host.page}#${commandAt('cmd-refused')}`, { key: KEY })
    await facts(page, 'Proven').getByText('The client refused to run it.').waitFor()
    await facts(page, 'Not proven').getByText('That the client ran none of it before it refused.').waitFor()
    expect(await page.getByText('That the client began it').count()).toBe(0)
  })

  it('place what happened to a command on one axis, by node, and say what they do not know of its client', async () => {
    const page = await open(`${host.page}#${commandAt('cmd-tried')}`, { key: KEY })
    const lane = (name: string) => page.locator('.lane', { hasText: name })
    await lane('relay')
      .getByRole('img', { name: /^admitted, / })
      .waitFor()
    await lane('relay')
      .getByRole('img', { name: /^failed, / })
      .waitFor()
    await lane('node node-1').getByRole('img').first().waitFor()
    await lane('client said').getByText('nothing in time: no acknowledgement, no refusal').waitFor()
    // No connection of this client is kept.
    await lane('client').getByText('presence unknown').or(lane('client').locator('.unwatched')).first().waitFor()
  })

  it('show numbers of the host as it gave them', async () => {
    const page = await open(`${host.page}#/delivery/nodes`, { key: KEY })
    const row = page.locator('tbody tr', { hasText: 'node-own' })
    await row.waitFor()
    const others = page.getByRole('button', { name: /^\+\d+ columns/ })
    if ((await others.count()) > 0) await others.click()
    await row.getByText('port 49153').waitFor()
    await row.getByText('pid 8793').waitFor()
  })

  it('say why a command may not be there, and nothing of what its fields prove', async () => {
    const page = await open(`${host.page}#${commandAt('none')}`, { key: KEY, refusals: true })
    await page.locator('main .absent', { hasText: /No such record.*an hour by default.*never admitted/ }).waitFor()
    expect(await page.getByText('no field proves').count()).toBe(0)
    expect(await page.locator('main .trouble').count()).toBe(0)
  })

  it('say once that a connection is not there, and why', async () => {
    const page = await open(`${host.page}#/connections/none`, { key: KEY, refusals: true })
    await page.locator('main .absent', { hasText: /No such record.*your key does not cover its user/ }).waitFor()
    expect(await page.locator('main').getByText('No such record').count()).toBe(1)
  })

  it('name a scope only where it is not the user’s', async () => {
    const page = await open(`${host.page}#/delivery/commands?client_id=desk`, { key: KEY })
    const row = page.locator('tbody tr', { hasText: 'cmd-tried' })
    const scope = (await host.ask<{ admission: { scope_id: string } }>(commandAt('cmd-tried'))).admission.scope_id
    await row.getByRole('link', { name: scope }).waitFor()
  })

  it('are all of them on a narrow screen: every end of the flow, and a status before whose it is', async () => {
    const page = await open(host.page, { key: KEY, viewport: { width: 400, height: 800 } })
    const flow = page.locator('.flow')
    await flow.waitFor()
    for (const name of ['waiting', 'attempted', 'acknowledged', 'failed', 'rejected']) {
      const box = await flow.getByRole('link', { name }).boundingBox()
      expect([name, (box?.x ?? 400) + (box?.width ?? 0) <= 400]).toEqual([name, true])
    }
    await page.goto(`${host.page}#/connections`)
    const heads = page.locator('thead th')
    await heads.first().waitFor()
    expect((await heads.allTextContents()).slice(0, 2)).toEqual(['who +4 columns', 'status'])
  })
})
