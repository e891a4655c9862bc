import { z } from 'zod'
import { defineTool } from '../graph/tool.ts'

/**
 * Turns `origin_files` into `preprocessed_files`. Its kinds of files come with the extraction of documents and tables;
 * until then there is none it has work for, and text files are read as they are by search_file_content and read_file.
 */
export default defineTool({
  name: 'preprocess-files',
  description: 'Makes documents and tables of the given files',
  kinds: ['prepare'],
  pure: true,
  input: z.strictObject({}),
  reads: [],
  writes: ['preprocessed_files'],
  skip: () => true,
  run: (_state, { checkpoint }) => checkpoint({ summary: 'No file needs preparing', relevance: 0 }),
})
