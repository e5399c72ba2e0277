#include "stories/stories_text.h"

namespace sextant {

std::string_view story_themes_of_town() {
  return R"(
theme: bakery
place: bakery/in | kitchen/in | mill/at | sweet shop/in | cafe/in
thing: rolling pin/smooth | cookie cutter/sharp | whisk/wire | apron/white | recipe/secret | cake tin/round
  jar/cracked
animal: mouse/grey/nibbled a crumb | kitten/white/mewed | puppy/spotted/begged for more
  ant/tiny/carried a sugar grain | canary/yellow/trilled
worker: baker/he/his | pastry cook/she/her | waiter/he/his | confectioner/she/her
spot: under the kitchen table | behind the flour sacks | inside the bread bin | between the loaves
  beneath the tea towel | behind the sugar jar
skill: knead dough/kneading dough | bake bread/baking bread | whip cream/whipping cream | ice a cake/icing a cake
  flip a pancake/flipping a pancake
trouble: oven/stayed cold/swept out the chimney | mixer/made a terrible noise/put in a new belt
  cake/sank in the middle/filled the hole with cream | teapot/lost its handle/stuck the handle back on
scene: flour drifted through the air | the bread smelled wonderful | butter melted in the pan
  buns cooled on the tray | the oven glowed | customers queued at the counter
food: a warm cinnamon bun | some almond cookies | a slice of apple pie
sound: a bubbling noise | a popping sound | a loud hiss
make: bake a cake/baked a cake with three layers/cake | make jam/cooked a pot of strawberry jam/jam
  build a gingerbread house/iced a gingerbread house/gingerbread house
fun: licked the spoons | rolled out the dough | cut out cookies | sprinkled sugar on the buns

theme: school
place: school/at | library/in | classroom/in | reading room/in | schoolyard/in | bookshop/in | gym/in | archive/in
  science room/in | attic/in
thing: pencil/sharp | bookmark/silk | ruler/straight | diary/secret | satchel/leather | atlas/dusty | marble/glass
  pair of glasses/round | notebook/neat | letter/sealed | magnet/strong | inkwell/empty | lunch box/square | key/rusty
animal: hamster/brown/stuffed its cheeks | bookworm/tiny/nibbled a page | rabbit/white/wiggled its nose
  mouse/timid/squeaked | guinea pig/fat/squeaked | spider/black/spun a thread | parakeet/talkative/said hello
  bat/sleepy/folded its wings | snail/patient/left a silver trail | kitten/curious/purred
worker: teacher/she/her | librarian/she/her | caretaker/he/his | author/he/his | headmaster/he/his | printer/he/his
  professor/she/her
spot: under the desk | under the carpet | behind the blackboard | behind the shelves | inside the cupboard
  inside the thick dictionary | between the books | between the pages | beneath the coat hooks | beneath the ladder
  behind the piano | behind the curtain
skill: spell long words/spelling long words | read aloud/reading aloud | do sums/doing sums
  sort the books/sorting the books | write a poem/writing a poem | bind a book/binding a book
  tidy the shelves/tidying the shelves | tell a story/telling a story
  draw a map of the world/drawing a map of the world | solve the puzzle/solving the puzzle
trouble: globe/rolled off the table/glued its stand | bookshelf/collapsed/propped it up with bricks
  bell/would not ring/tightened a screw | old book/lost its cover/pasted on a new cover
  piano/lost a key/glued on a new key | reading lamp/flickered and died/found a new bulb
  projector/blew a fuse/changed the fuse | typewriter/jammed/freed the stuck letters
scene: chalk dust hung in the air | pages turned softly | the children whispered and giggled
  rain pattered on the skylight | the bell rang for recess | dust danced in the light
  the teacher wrote on the blackboard | a clock ticked on the wall | pens scratched on paper
  readers sat deep in armchairs | the hall echoed with footsteps | it was as still as a whisper
food: a box of raisins | some oat biscuits | some buttered toast | a slice of fruit cake | a carton of milk
  a pot of black tea
sound: a scraping noise | a rustling of paper | a quick tap | a gentle thud | a nervous squeal | a creaking noise
make: build a volcano/built a smoking volcano/volcano | write a book/wrote a thin book/book
  write a play/wrote a short play/play | draw a comic/drew a funny comic/comic
  paint a poster/painted a giant poster/poster | make a birthday card/made a birthday card/birthday card
fun: skipped in the yard | read about pirates | played leapfrog | looked at the pictures | solved riddles
  acted out a fairy tale | swapped stickers | explored the shelves

theme: market
place: market/at | square/in | fountain/at | fruit stall/at | town hall/at
thing: coin/shiny | purse/velvet | vase/blue | bracelet/amber | umbrella/red | candle/scented | mirror/round
animal: pigeon/plump/cooed | cat/ginger/licked its paws | sparrow/bold/pecked at crumbs
  rat/clever/twitched its whiskers | lapdog/fluffy/yelped
worker: greengrocer/she/her | butcher/he/his | flower seller/she/her | mayor/he/his
spot: under the stall | behind the crates | inside the sack | between the cabbages | beneath the awning
  behind the scales
skill: weigh the apples/weighing the apples | sell flowers/selling flowers | count the change/counting the change
  juggle oranges/juggling oranges | carry the crates/carrying the crates
trouble: cart/lost a wheel/pushed the wheel back on | awning/came down/hung it up with string
  clock/stopped at noon/polished every wheel | fountain/ran dry/cleaned out the pipe
scene: the traders shouted their prices | people crowded around the stalls | the church bell struck noon
  water bubbled in the fountain | a busker played the accordion | the smell of spices filled the air
food: a bag of cherries | some ripe peaches | a paper cone of peanuts
sound: a muffled squeak | a clinking sound | a loud crash
make: make a fruit salad/mixed a colourful fruit salad/fruit salad | tie a bouquet/tied a bouquet of tulips/bouquet
  set up a stall/set up a stall with lemonade/stall
fun: tasted the grapes | strolled past the stalls | listened to the busker | tossed coins into the fountain

theme: show
place: circus/at | concert hall/in | big tent/in | bandstand/at | ring/in | music school/at | funfair/at
  dance hall/in | wagon camp/in | ballroom/in
thing: juggling ball/striped | violin/old | trumpet/golden | hoop/silver | tambourine/round | clown nose/red
  triangle/silver | unicycle/tall | guitar/red | wand/magic | songbook/worn | ribbon/pink | harmonica/small
animal: elephant/baby/lifted its trunk | nightingale/shy/sang a note | monkey/tiny/turned a somersault
  cricket/musical/fiddled a tune | poodle/trained/jumped through a hoop | sea lion/clever/balanced a ball
  songbird/gifted/whistled sweetly | pony/white/trotted in a circle | cockatoo/white/danced a jig
worker: clown/he/his | conductor/she/her | acrobat/she/her | violinist/he/his | ringmaster/he/his | singer/she/her
  juggler/she/her | drummer/he/his
spot: under the benches | under the piano | behind the wagon | behind the drums | inside the costume trunk
  inside the tuba | between the tent ropes | between the music stands | beneath the trampoline | beneath the stage
  behind the popcorn stand | behind the harp
skill: walk the tightrope/walking the tightrope | play the violin/playing the violin
  juggle three balls/juggling three balls | dance a waltz/dancing a waltz | turn a cartwheel/turning a cartwheel
  sing in tune/singing in tune | ride a unicycle/riding a unicycle | keep the beat/keeping the beat
  tame a lion/taming a lion | tune the guitar/tuning the guitar
trouble: trapeze/came down with a bump/knotted the ropes again | guitar/lost a string/put on a new string
  merry wheel/creaked and stopped/oiled the gears | piano/went out of tune/tightened every string
  trampoline/had a tear/darned it with thick yarn | drum/burst/stretched a new skin over it
  caravan/lost its brakes/blocked the wheels | microphone/went dead/plugged it in again
scene: the clowns tumbled through the ring | the orchestra tuned up | the trumpets blared
  a melody floated across the room | the crowd roared with laughter | the audience hushed | sawdust flew up
  the cellos hummed | acrobats somersaulted overhead | couples twirled across the floor
  the lights twinkled around the tent | the choir practised a hymn
food: some candyfloss | some honey drops | a toffee apple | a glass of ginger ale | a bag of roasted nuts
  a tray of tiny tarts
sound: a mighty roar | a squeaky note | a comical honk | a deep boom | a burst of laughter | a jangling chord
make: plan a circus act/put on a daring circus act/act | write a song/wrote a cheerful song/song
  build a human pyramid/stacked a wobbly human pyramid/pyramid | form a band/formed a merry band/band
  sew a clown suit/sewed a baggy clown suit/suit | make a drum/made a drum from an old barrel/drum
fun: laughed at the clowns | clapped to the beat | rode on the carousel | hummed along | turned cartwheels
  danced in a ring | bounced on the trampoline | banged on the drums
)";
}

}  // namespace sextant
