/** Opens the shared notes in two real browser pages, and does to them what happens to such pages. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isChromiumMissing, launchChromium } from '../chromium.js'
import { end, type LiveHost, startLiveHost } from './live-host-process.js'

// A lost host is asked for again after 5 to 7.5 s, and after twice that when it was not back yet.
const RECOVERY_MS = 45_000
// A slow machine shows the same thing, later.
const SHOWN = { timeout: 300_000 }

/** Pastes a line that the host has printed into a shell. */
async function paste(host: LiveHost, pattern: RegExp): Promise<unknown> {
  const line = host.text.split('\n').find((printed) => pattern.test(printed)) ?? ''
  const { stdout } = await promisify(execFile)('sh', ['-c', line])
  return JSON.parse(stdout)
}

const publish = (host: LiveHost) => paste(host, /^ {2}curl .*\/sites\/notes\/events'$/)

describe.skipIf(isChromiumMissing)('two viewers of the shared notes (needs chromium)', () => {
  let state: string
  let host: LiveHost
  let browser: Browser
  let first: Page
  let second: Page
  const faults: string[] = []

  async function open(): Promise<Page> {
    const page = await (await browser.newContext()).newPage()
    page.on('pageerror', (error) => faults.push(error.message))
    await page.goto(`${host.url}/notes`)
    await page.getByText('The stream: live').waitFor()
    return page
  }

  const notesOf = (page: Page) => page.locator('#notes li')
  const framesOf = (page: Page, what: string) => page.locator(`#log li[data-frame=${what}]`)
  const shows = (page: Page, texts: string[]) =>
    expect
      .poll(async () => (await notesOf(page).allTextContents()).map((text) => text.replace(/ Archive$/, '')), SHOWN)
      .toEqual(texts)
  const archive = (page: Page, text: string) => notesOf(page).filter({ hasText: text }).getByRole('button').click()

  async function add(page: Page, text: string, keep = false): Promise<void> {
    await page.getByLabel('a note').fill(text)
    await page.getByLabel('to be kept').setChecked(keep)
    await page.getByRole('button', { name: 'Add' }).click()
  }

  beforeAll(async () => {
    state = await mkdtemp(join(tmpdir(), 'relayscope-test-'))
    host = await startLiveHost(['--state', state])
    browser = await launchChromium()
    first = await open()
    second = await open()
  })
  afterAll(async () => {
    await browser?.close()
    if (host) await end(host)
    await rm(state, { recursive: true })
  })

  it('see what a program outside has published', async () => {
    const before = await Promise.all([first, second].map((page) => framesOf(page, 'event').count()))
    expect(await publish(host)).toMatchObject({ accepted: true, published: true })
    for (const [i, page] of [first, second].entries())
      await expect.poll(() => framesOf(page, 'event').count(), SHOWN).toBeGreaterThan(before[i] as number)
  })

  it('see what the other one has done', async () => {
    await add(first, 'buy milk')
    await add(second, 'the key is under the mat', true)
    for (const page of [first, second]) await shows(page, ['buy milk', 'the key is under the mat (kept)'])
    await archive(second, 'buy milk')
    for (const page of [first, second]) await shows(page, ['the key is under the mat (kept)'])
  })

  it('see an error for an action that the application does not approve', async () => {
    await archive(first, 'the key')
    await first.getByText('approval_denied').waitFor()
    await shows(second, ['the key is under the mat (kept)'])
  })

  it('leave evidence of what they asked in the diagnostics', async () => {
    const { body } = await host.ask('/history/messages?stream=users%2Fgrace%2Fclients%2Fnotes-app%2Fcommands&limit=500')
    const { items } = body as { items: { kind: string; payload: { action?: string; parameters?: object } }[] }
    const asked = items.find(({ kind, payload }) => kind === 'command' && payload.action === 'add_note')
    expect(asked?.payload.parameters).toMatchObject({
      text: 'buy milk',
      __cooperative_site_id: 'notes',
      __cooperative_site_session_id: 'notes-room',
    })
  })

  it.each([
    ['killed', 'SIGKILL', 'SIGKILL'],
    ['ended', 'SIGINT', 0],
  ] as const)(
    'come back with a gap when the host is %s and started again',
    async (how, signal, exit) => {
      const before = await Promise.all([first, second].map((page) => framesOf(page, 'gap').count()))
      expect(await end(host, signal)).toBe(exit)
      if (how === 'ended') await first.getByText('the host is restarting').waitFor()
      host = await startLiveHost(['--state', state, '--port', new URL(host.url).port])
      for (const [i, page] of [first, second].entries()) {
        const gaps = framesOf(page, 'gap')
        await expect.poll(() => gaps.count(), { timeout: RECOVERY_MS }).toBe((before[i] as number) + 1)
        expect(await gaps.first().textContent()).toContain('"reason":"resume"')
      }
      await publish(host)
      for (const page of [first, second]) await shows(page, ['the key is under the mat (kept)'])
      await add(first, `${how}, and back`)
      await shows(second, ['the key is under the mat (kept)', `${how}, and back`])
      await archive(second, 'and back')
      for (const page of [first, second]) await shows(page, ['the key is under the mat (kept)'])
    },
    2 * RECOVERY_MS,
  )

  it('are disconnected one by one: a revoked viewer ends, and the other continues', async () => {
    expect(await paste(host, /^ {2}curl -s -X DELETE .*\/viewers\/guest-1'$/)).toEqual({ revoked: true })
    await first.getByText('ended: policy_revoked').waitFor()
    await add(first, 'let me in')
    await first.getByText('unauthenticated').waitFor()
    await add(second, 'alone now')
    await shows(second, ['the key is under the mat (kept)', 'alone now'])
    await shows(first, ['the key is under the mat (kept)'])
    expect(faults).toEqual([])
  })
})
