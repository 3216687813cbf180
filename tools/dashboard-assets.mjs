/** Bundles the dashboard's page: script, style sheet and two pages of docs, as texts that the package and the tests build in. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { rolldown } from 'rolldown'
import { minify } from 'rolldown/utils'
import { docsPage } from './docs-page.mjs'

const sourceOf = (file) => fileURLToPath(new URL(`../src/dashboard/page/${file}`, import.meta.url))
// What is bundled brings its terms along.
const NOTICE = '/*! preact, MIT License, Copyright (c) 2015-present Jason Miller */'

async function script() {
  const bundle = await rolldown({
    input: sourceOf('main.tsx'),
    platform: 'browser',
    treeshake: { propertyReadSideEffects: false, unknownGlobalSideEffects: false },
    // The minifier inlines better.
    optimization: { inlineConst: false },
    transform: {
      target: 'es2022',
      // Not the runtime that types are checked with: calls of `h` are shorter, by a twentieth of the script.
      jsx: { runtime: 'classic', pragma: 'h', pragmaFrag: 'Fragment' },
      inject: { h: ['preact', 'h'], Fragment: ['preact', 'Fragment'] },
    },
  })
  const { output } = await bundle.generate({ format: 'esm', comments: false })
  await bundle.close()
  const minified = await minify('page.js', output[0].code, {
    module: true,
    compress: { target: 'es2022' },
    mangle: { toplevel: true },
  })
  return `${NOTICE}\n${minified.code.trim()}`
}

async function style() {
  const { outputFiles } = await build({ entryPoints: [sourceOf('page.css')], bundle: true, write: false, minify: true })
  return outputFiles[0].text.trim()
}

const compressed = (text) => JSON.stringify(gzipSync(text, { level: 9 }).toString('base64'))

/** A page of the documentation that findings and problems name. */
const documentOf = (name) => compressed(docsPage(readFileSync(new URL(`../docs/${name}.md`, import.meta.url), 'utf8')))

/** The constants of `src/dashboard/dashboard.ts`, as a bundler defines them. */
export async function dashboardAssets() {
  const [js, css] = await Promise.all([script(), style()])
  // Texts and not one object, which a bundler would put where every entry finds it.
  return {
    RELAYSCOPE_DASHBOARD_SCRIPT: compressed(js),
    RELAYSCOPE_DASHBOARD_STYLE: compressed(css),
    RELAYSCOPE_DASHBOARD_FINDINGS: documentOf('findings'),
    RELAYSCOPE_DASHBOARD_PROBLEMS: documentOf('problems'),
  }
}
