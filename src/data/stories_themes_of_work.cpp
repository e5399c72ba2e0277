#include "data/stories_text.h"

namespace sextant {

std::string_view story_themes_of_work() {
  return R"(
theme: farm
place: farm/on | barn/in | orchard/in | stable/in | cornfield/in
thing: horseshoe/lucky | egg basket/wicker | milk can/shiny | straw hat/floppy | cowbell/loud | rake/long | apple/rosy
animal: chick/yellow/cheeped | piglet/muddy/squealed | lamb/woolly/skipped about
  calf/clumsy/swished its tail | goose/bossy/hissed
worker: farmer/he/his | milkmaid/she/her | shepherdess/she/her | stable boy/he/his
spot: under the hay | behind the tractor | inside the trough | between the pumpkins | beneath the henhouse
  behind the haystack
skill: milk a cow/milking a cow | ride a pony/riding a pony | shear a sheep/shearing a sheep
  plough a field/ploughing a field | stack the hay/stacking the hay
trouble: tractor/would not start/cleaned the spark plug | gate/fell off its hinges/hung it on new hinges
  henhouse/lost its door/nailed together a new door | scarecrow/lost its arm/stuffed a new sleeve with straw
scene: the cows grazed by the fence | the rooster crowed on the roof | the wheat swayed in the fields
  swallows swooped through the barn | the pigs wallowed in the mud | the windmill turned slowly
food: a glass of fresh milk | some boiled eggs | a bowl of porridge
sound: a loud moo | a frantic cackle | a soft bleat
make: build a scarecrow/built a silly scarecrow/scarecrow | carve a pumpkin/carved a grinning pumpkin/pumpkin
  make butter/churned a tub of butter/butter
fun: fed the chickens | jumped into the hay | picked apples | brushed the ponies

theme: castle
place: castle/in | throne room/in | courtyard/in | dungeon/in | drawbridge/on
thing: shield/wooden | goblet/golden | sword/blunt | royal seal/wax | glass slipper/tiny | horn/ivory | ruby/red
animal: unicorn/gentle/bowed its head | dragon/baby/puffed out smoke | falcon/royal/ruffled its feathers
  hound/faithful/thumped its tail | toad/enchanted/winked
worker: knight/he/his | queen/she/her | princess/she/her | jester/he/his
spot: under the throne | behind the tapestry | inside the cellar | between the battlements | beneath the drawbridge
  behind the suit of armour
skill: ride a horse/riding a horse | shoot an arrow/shooting an arrow | polish the armour/polishing the armour
  guard the gate/guarding the gate | blow the horn/blowing the horn
trouble: drawbridge/would not close/greased the chains | throne/lost an armrest/carved a new armrest
  catapult/broke its spring/wound a new spring | carriage/threw a wheel/rolled the wheel back
scene: banners fluttered from the towers | torches burned along the walls | the moat was deep and dark
  minstrels sang of heroes | the guards marched past | trumpets announced the queen
food: a leg of turkey | some plum pudding | a silver plate of figs
sound: a clank of chains | a ghostly groan | a rumbling snore
make: hold a feast/prepared a royal feast/feast | build a wooden horse/built a wooden horse on wheels/wooden horse
  sew a banner/sewed a banner with a lion/banner
fun: played knights | danced in the courtyard | explored the dungeon | bowed before the queen

theme: garden
place: garden/in | greenhouse/in | rose bed/at | shed/in | lawn/on
thing: watering can/green | trowel/pointed | flower pot/clay | seed packet/paper | glove/leather | garden gnome/cheerful
  sunflower/tall
animal: ladybird/red/crawled up a stem | worm/pink/wriggled | butterfly/bright/fluttered its wings
  bee/busy/hummed | caterpillar/hairy/munched a leaf
worker: gardener/she/her | florist/he/his | neighbour/she/her | park keeper/he/his
spot: under the lettuce | behind the compost heap | inside the flower pot | between the tomatoes | beneath the roses
  under the wheelbarrow
skill: plant seeds/planting seeds | water the flowers/watering the flowers | mow the lawn/mowing the lawn
  prune the roses/pruning the roses | pull up weeds/pulling up weeds
trouble: wheelbarrow/tipped over and cracked/riveted a patch onto it | greenhouse/lost a pane/slid in a new pane
  sprinkler/stopped spraying/rinsed out the nozzle | trellis/broke under the vines/wired it together
scene: bees buzzed around the lavender | the roses were in full bloom | a sprinkler sprayed the lawn
  petals fell onto the path | the tomatoes grew ripe and red | a blackbird sang on the gate
food: a bowl of strawberries | some crunchy carrots | a cucumber sandwich
sound: a quiet buzz | a snipping sound | a crunching noise
make: plant a flower bed/planted a flower bed of daisies/flower bed | build a birdhouse/built a wooden birdhouse/birdhouse
  lay a path/laid a winding path/path
fun: smelled the roses | chased butterflies | rolled on the lawn | pulled up radishes

theme: music
place: concert hall/in | bandstand/at | music school/at | dance hall/in | ballroom/in
thing: violin/old | trumpet/shiny | tambourine/round | triangle/silver | guitar/red | songbook/worn | harmonica/small
animal: nightingale/shy/sang a note | cricket/musical/fiddled a tune | poodle/vain/howled along
  songbird/gifted/whistled sweetly | cockatoo/white/danced a jig
worker: conductor/she/her | violinist/he/his | singer/she/her | drummer/he/his
spot: under the piano | behind the drums | inside the tuba | between the music stands | beneath the stage
  behind the harp
skill: play the violin/playing the violin | dance a waltz/dancing a waltz | sing in tune/singing in tune
  keep the beat/keeping the beat | tune the guitar/tuning the guitar
trouble: guitar/lost a string/put on a new string | piano/went out of tune/tightened every string
  drum/burst/stretched a new skin over it | microphone/went dead/plugged it in again
scene: the orchestra tuned up | a melody floated across the room | the audience hushed
  the cellos hummed | couples twirled across the floor | the choir practised a hymn
food: some honey drops | a glass of ginger ale | a tray of tiny tarts
sound: a squeaky note | a deep boom | a jangling chord
make: write a song/wrote a cheerful song/song | form a band/formed a merry band/band
  make a drum/made a drum from an old barrel/drum
fun: clapped to the beat | hummed along | danced in a ring | banged on the drums

theme: workshop
place: workshop/in | sawmill/at | toy shop/in | garage/in | smithy/in
thing: hammer/sturdy | spinning top/wooden | music box/tiny | tape measure/yellow | toolbox/steel | chisel/sharp
  puppet/jolly
animal: cricket/merry/chirped | tomcat/lazy/stretched its legs | termite/hungry/gnawed at a board
  sparrow/dusty/hopped about | dormouse/drowsy/rubbed its eyes
worker: carpenter/she/her | blacksmith/he/his | toymaker/he/his | inventor/she/her
spot: under the workbench | behind the anvil | inside the toolbox | between the planks | beneath the sawdust
  behind the paint cans
skill: saw a plank/sawing a plank | hammer a nail/hammering a nail | carve a spoon/carving a spoon
  sand the table/sanding the table | forge a key/forging a key
trouble: drill/stopped spinning/replaced the cord | rocking horse/lost a leg/carved a new leg
  robot/shut down/soldered a loose wire | cuckoo clock/ran backwards/turned a tiny cog
scene: sawdust covered the floor | sparks sprayed from the grindstone | the bellows wheezed
  tools hung neatly on the wall | the saw whined | fresh paint dripped from a brush
food: some bacon sandwiches | a bowl of potato stew | a mug of cider
sound: a rhythmic tapping | a grinding noise | a sudden twang
make: build a rocking chair/built a rocking chair of oak/rocking chair | build a doll's house/built a splendid doll's house/doll's house
  build a robot/put together a blinking robot/robot
fun: painted wooden blocks | tried out the toys | hammered nails | built towers of scraps

theme: stars
place: observatory/at | planetarium/in | rooftop/on | launch pad/at | space centre/at
thing: telescope/long | meteorite/black | star chart/blue | model rocket/tall | moon rock/grey | walkie talkie/orange
  space helmet/white
animal: alien/friendly/waved its antennae | robot dog/metal/beeped | space monkey/famous/floated upside down
  glow worm/bright/lit up | night owl/wise/turned its head
worker: astronaut/she/her | astronomer/he/his | pilot/she/her | engineer/he/his
spot: under the telescope | behind the control panel | inside the capsule | between the computers | beneath the dome
  behind the fuel tank
skill: find the North Star/finding the North Star | launch a rocket/launching a rocket | fly a spaceship/flying a spaceship
  count down from ten/counting down from ten | land on the moon/landing on the moon
trouble: rocket/lost a fin/welded the fin back on | telescope/went blurry/wiped the lens
  radio/went silent/bent the antenna | space rover/tipped onto its side/turned it the right way up
scene: a comet streaked across the sky | the planets gleamed | the rocket roared into space
  Saturn showed its rings | screens flashed in the control room | the moon was round and full
food: some dried space fruit | a tube of peanut paste | a star of shortbread
sound: a crackling signal | a strange hum | a quick series of beeps
make: build a rocket/built a rocket from cardboard/rocket | make a star map/drew a star map on black paper/star map
  build a telescope/built a telescope from two lenses/telescope
fun: searched for comets | floated like astronauts | named new stars | counted the craters
)";
}

}  // namespace sextant
