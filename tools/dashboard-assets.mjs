/** Bundles the dashboard's page: one script and one style sheet, as texts that the package and the tests build in. */
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const sourceOf = (file) => fileURLToPath(new URL(`../src/dashboard/page/${file}`, import.meta.url))
// What is bundled brings its terms along.
const NOTICE = '/*! preact, MIT License, Copyright (c) 2015-present Jason Miller */'

async function bundle(options) {
  const { outputFiles } = await build({ bundle: true, write: false, legalComments: 'none', ...options })
  return outputFiles[0].text.trim()
}

function script() {
  return bundle({
    entryPoints: [sourceOf('main.tsx')],
    format: 'esm',
    minify: true,
    target: 'es2022',
    banner: { js: NOTICE },
    // Not the runtime that types are checked with: calls of `h` are shorter, by a twentieth of the script.
    tsconfigRaw: { compilerOptions: { jsx: 'react', jsxFactory: 'h', jsxFragmentFactory: 'Fragment' } },
    inject: [sourceOf('jsx.ts')],
  })
}

const compressed = (text) => JSON.stringify(gzipSync(text, { level: 9 }).toString('base64'))

/** The constants of `src/dashboard/dashboard.ts`, as a bundler defines them. */
export async function dashboardAssets() {
  const [js, css] = await Promise.all([script(), bundle({ entryPoints: [sourceOf('page.css')], minify: true })])
  // Texts and not one object, which a bundler would put where every entry finds it.
  return { RELAYSCOPE_DASHBOARD_SCRIPT: compressed(js), RELAYSCOPE_DASHBOARD_STYLE: compressed(css) }
}
