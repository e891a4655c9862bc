import { memoizeByObject } from '../../state/memoize.ts'
import { responseFormatsRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { builtInFormats } from './built-in/built-in-formats.ts'
import { checkFormat } from './formats/format-check.ts'
import { compileFormat } from './formats/format-compiler.ts'
import { testStoredFormat } from './formats/format-test.ts'
import { createCategoryFormats } from './provider/category-formats.ts'
import { createFormatDraft } from './provider/format-draft.ts'
import { createReranker } from './provider/reranker.ts'
import { openHttpProvider } from './provider/template-provider.ts'

export default defineService({
  provides: responseFormatsRef,
  needs: {},
  start() {
    const compile = memoizeByObject(compileFormat)
    return {
      builtIn: builtInFormats(),
      compile,
      openDraft: (reader, request) =>
        createFormatDraft(reader, { format: 'sse', marksItsEnd: true, comesAsList: false }, request),
      openProvider: (options) => openHttpProvider({ ...options, compile }),
      ofCategory: createCategoryFormats(),
      createReranker,
      findErrors: checkFormat,
      test: testStoredFormat,
    }
  },
})
