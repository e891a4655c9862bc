#!/usr/bin/env bash
# Makes the files of this folder with programs of others, so that the readers are tested on what users upload.
# Needs Debian's libreoffice-{writer,calc,impress}-nogui, python3-uno, fonts-noto-cjk, imagemagick, ghostscript, qpdf,
# pandoc, gnumeric, zip and p7zip-full. The tests read the committed files and never run this.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
office() { # FORMAT FILE: LibreOffice converts FILE, and prints where the result is
  soffice --headless "-env:UserInstallation=file://$work/profile" --convert-to "$1" --outdir "$work/out" "${@:3}" "$2" >/dev/null 2>&1
}
put() { mv "$work/out/$1" "$2"; }

# ---- sources ----
cat >"$work/report.html" <<'HTML'
<html><head><meta charset="utf-8"><title>Budget 2026</title></head><body>
<h1>Budget 2026</h1><p>The council of Ulm set aside 48213 euros for the bicycle bridge.</p>
<h2>Cities</h2><table border="1"><tr><th>City</th><th>People</th><th>Budget</th></tr>
<tr><td>Ulm</td><td>126000</td><td>48213</td></tr><tr><td>Basel</td><td>178000</td><td>51500</td></tr>
<tr><td>Graz</td><td>292000</td><td>60750</td></tr></table>
<h2>Outlook</h2><p>The next meeting is on 2026-11-30.</p></body></html>
HTML
cat >"$work/chinese.html" <<'HTML'
<html><head><meta charset="utf-8"><title>预算报告</title></head><body>
<h1>预算报告</h1><p>市议会为自行车桥拨款48213欧元。</p>
<h2>城市</h2><table border="1"><tr><th>城市</th><th>人口</th></tr><tr><td>乌尔姆</td><td>126000</td></tr>
<tr><td>巴塞尔</td><td>178000</td></tr></table></body></html>
HTML
cat >"$work/cities.csv" <<'CSV'
City,People,Budget,Founded
Ulm,126000,48213.50,1181-06-01
Basel,178000,51500.00,1080-01-15
Graz,292000,60750.25,1128-03-09
Trento,118000,39990.00,1027-05-31
CSV
cat >"$work/chinese.csv" <<'CSV'
城市,人口,预算
乌尔姆,126000,48213
巴塞尔,178000,51500
格拉茨,292000,60750
CSV
cat >"$work/report.md" <<'MD'
# Budget 2026

The council of Ulm set aside **48213 euros** for the bicycle bridge.

## Cities

| City | People |
|------|--------|
| Ulm | 126000 |
| Basel | 178000 |

## Outlook

The next meeting is on 2026-11-30.
MD
cat >"$work/slides.md" <<'MD'
# Budget 2026

- The council of Ulm set aside 48213 euros
- For the bicycle bridge

# Outlook

- The next meeting is on 2026-11-30
MD

cat >"$work/notes.md" <<'MD'
# Notes

1. First, the bridge
2. Then the station
    - with a roof

The council[^1] met **twice**.

[^1]: Eleven members voted.

## Plan

![A sketch](scan.png)

    code < 1
MD

# ---- LibreOffice Writer ----
for format in docx odt rtf doc; do office "$format" "$work/report.html" --infilter="HTML (StarWriter)"; put "report.$format" "report.$format"; done
office pdf:writer_web_pdf_Export "$work/report.html"; put report.pdf report-table.pdf
office docx "$work/chinese.html" --infilter="HTML (StarWriter)"; put chinese.docx "预算报告.docx"
office odt "$work/chinese.html" --infilter="HTML (StarWriter)"; put chinese.odt "预算报告.odt"
office pdf:writer_web_pdf_Export "$work/chinese.html"; put chinese.pdf "预算报告.pdf"
printf '%s\n' 'The council of Ulm set aside 48213 euros.' >"$work/short.txt"
office docx "$work/short.txt"; put short.docx short.docx
office odt "$work/short.txt"; put short.odt short.odt
office html:HTML "$work/short.txt"; put short.html short.html
: >"$work/blank.txt"; office docx "$work/blank.txt"; put blank.docx blank.docx
office odt "$work/blank.txt"; put blank.odt blank.odt

# ---- LibreOffice Calc ----
for format in xlsx ods xls html; do office "$format" "$work/cities.csv" --infilter='Text - txt - csv (StarCalc):44,34,76,1'; done
put cities.xlsx cities.xlsx; put cities.ods cities.ods; put cities.xls cities.xls; put cities.html cities-table.html
office xlsx "$work/chinese.csv" --infilter='Text - txt - csv (StarCalc):44,34,76,1'; put chinese.xlsx "城市人口.xlsx"
office 'csv:Text - txt - csv (StarCalc):59,34,76,1' cities.xlsx; put cities.csv cities-semicolon.csv
office 'csv:Text - txt - csv (StarCalc):9,34,76,1' cities.xlsx; put cities.csv cities-tabs.tsv
office 'csv:Text - txt - csv (StarCalc):44,34,65535,1' cities.xlsx; put cities.csv cities-utf16.csv
office pdf:calc_pdf_Export cities.xlsx; put cities.pdf cities.pdf

# ---- LibreOffice Impress ----
pandoc -t pptx -o slides-pandoc.pptx "$work/slides.md"
office odp slides-pandoc.pptx; put slides-pandoc.odp slides.odp
office pptx slides.odp; put slides.pptx slides.pptx
office pdf:impress_pdf_Export slides.odp; put slides.pdf slides.pdf

# ---- pandoc, gnumeric, qpdf, Ghostscript, ImageMagick, zip, 7z, iconv ----
pandoc -o report-pandoc.docx "$work/report.md"; pandoc -o report-pandoc.odt "$work/report.md"
pandoc -s --metadata title=Budget -o report-pandoc.html "$work/report.md"; pandoc -t rst -o report.rst "$work/report.md"
pandoc -t json -o report-pandoc.json "$work/report.md"; pandoc -o report.epub "$work/report.md"
cp "$work/report.md" report.md
ssconvert "$work/cities.csv" cities-gnumeric.xlsx 2>/dev/null; ssconvert cities-gnumeric.xlsx cities-gnumeric.csv 2>/dev/null
iconv -f utf-8 -t gbk "$work/chinese.csv" >"城市-gbk.csv"
pandoc -t plain "$work/chinese.html" | iconv -f utf-8 -t gbk >"报告-gbk.txt"
iconv -f utf-8 -t gb18030 "$work/chinese.html" | sed 's/charset="utf-8"/charset="gb18030"/' >"报告-gb18030.html"
iconv -f utf-8 -t big5 <<<'市議會撥款四萬八千歐元。' >"報告-big5.txt"
iconv -f utf-8 -t shift_jis <<<'市議会は48213ユーロの予算を決めた。' >"予算-sjis.txt"
iconv -f utf-8 -t utf-16 "$work/cities.csv" >cities-iconv-utf16.csv
printf 'Ulm zahlt 48213 Euro f\xfcr die Br\xfccke.\r\n' >bruecke-latin1.txt
sed 's/$/\r/' "$work/cities.csv" | sed '1s/^/\xef\xbb\xbf/' >cities-excel.csv
/usr/bin/python3 - "$work/cities.csv" <<'PY'
import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1])))
json.dump(rows, open('cities.json', 'w'), indent=1)
with open('cities.ndjson', 'w') as out:
    for row in rows: out.write(json.dumps(row) + '\n')
json.dump({'name': '预算', 'items': rows}, open('预算.json', 'w'), ensure_ascii=False)
PY
# lists, a footnote, a table of contents, a picture
convert -size 200x60 xc:white -pointsize 20 -annotate +10+40 'sketch' "$work/scan.png"
pandoc --toc -s --resource-path="$work" -o notes-pandoc.docx "$work/notes.md"; pandoc --toc -s --resource-path="$work" -o notes-pandoc.odt "$work/notes.md"
office odt notes-pandoc.docx; put notes-pandoc.odt notes.odt; office docx notes-pandoc.odt; put notes-pandoc.docx notes.docx
ps2pdf <(gs -q -o - -sDEVICE=ps2write -c '/Helvetica findfont 14 scalefont setfont 72 700 moveto (The council of Ulm set aside 48213 euros.) show showpage') gs.pdf
convert -size 800x200 xc:white -pointsize 28 -fill black -annotate +20+100 'Ulm set aside 48213 euros' scan.png
convert scan.png -quality 60 scan.jpg; convert scan.png scan.webp; convert scan.png scan.gif; convert scan.png -compress lzw scan.tiff
gs -q -dNOSAFER -o scanned-page.pdf -sDEVICE=pdfwrite viewjpeg.ps -c '(scan.jpg) viewJPEG'
# one bit a pixel, as fax machines and many scanners write: an image, and a stencil
convert scan.png -monochrome "$work/scan.pbm"
for kind in image imagemask; do
  { echo '%!PS'; echo '<< /PageSize [800 200] >> setpagedevice 800 200 scale 0 setgray'
    echo '<< /ImageType 1 /Width 800 /Height 200 /BitsPerComponent 1 /Decode [1 0] /ImageMatrix [800 0 0 -200 0 200]'
    echo "/DataSource currentfile /ASCIIHexDecode filter >> $kind"
    tail -c 20000 "$work/scan.pbm" | od -An -v -tx1; echo '> showpage'; } >"$work/$kind.ps"
done
gs -q -o scanned-fax.pdf -sDEVICE=pdfwrite -dMonoImageFilter=/CCITTFaxEncode "$work/image.ps"
gs -q -o scanned-stencil.pdf -sDEVICE=pdfwrite "$work/imagemask.ps"
qpdf --empty --pages report-table.pdf scanned-page.pdf -- text-and-scan.pdf
qpdf --encrypt secret secret 256 -- report-table.pdf encrypted.pdf
qpdf --linearize report-table.pdf report-linearized.pdf
/usr/bin/python3 - "$work" <<'PY'
import os, subprocess, sys, time, uno
from com.sun.star.beans import NamedValue, PropertyValue
office = subprocess.Popen(['soffice', '--headless', '--accept=pipe,name=mason;urp;', f'-env:UserInstallation=file://{sys.argv[1]}/locked'],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
local = uno.getComponentContext()
resolver = local.ServiceManager.createInstanceWithContext('com.sun.star.bridge.UnoUrlResolver', local)
for _ in range(120):
    try:
        context = resolver.resolve('uno:pipe,name=mason;urp;StarOffice.ComponentContext')
        break
    except Exception:
        time.sleep(0.5)
desktop = context.ServiceManager.createInstanceWithContext('com.sun.star.frame.Desktop', context)
prop = lambda name, value: PropertyValue(name, 0, value, 0)
# OpenDocument takes a password, Microsoft's formats take encryption data
locked = (prop('Password', 'secret'), prop('EncryptionData', uno.Any('[]com.sun.star.beans.NamedValue', (NamedValue('CryptoType', 'Standard'), NamedValue('OOXPassword', 'secret')))))
for source, target, kind in [('report.docx', 'encrypted.docx', 'MS Word 2007 XML'), ('report.odt', 'encrypted.odt', 'writer8'),
                             ('cities.xlsx', 'encrypted.xlsx', 'Calc MS Excel 2007 XML')]:
    document = desktop.loadComponentFromURL('file://' + os.path.abspath(source), '_blank', 0, (prop('Hidden', True),))
    document.storeToURL('file://' + os.path.abspath(target), (prop('FilterName', kind), locked[kind != 'writer8']))
    document.close(True)
try: desktop.terminate()
except Exception: pass
office.wait(180)
PY
head -c 3000 report.docx >truncated.docx; head -c 4000 report-table.pdf >truncated.pdf; head -c 2500 cities.xlsx >truncated.xlsx
: >empty.docx; : >empty.csv
cp scan.png really-a-picture.pdf; cp report-table.pdf really-a-pdf.docx; cp cities.xlsx really-a-workbook.csv
zip -q -X files.zip report.md cities-excel.csv; zip -q -X -P secret encrypted.zip report.md
7z a -bd -y files.7z report.md >/dev/null; gzip -c -n "$work/cities.csv" >cities.csv.gz
